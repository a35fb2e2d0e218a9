/** The Skill that an agent gets under v2, in the gateway's own words (DESIGN §3 Skill). */
import { createHash } from 'node:crypto'
import type { ProjectedTool } from './card.js'

export interface Skill {
  readonly id: string
  readonly markdown: string
  /** Lower-case hex over the UTF-8 bytes, for the header `X-XAgent-Skill-SHA256`. */
  readonly sha256: string
}

/** `im.wechat` → `connector-im-wechat` (PROTOCOL "Connector Card": Skill names). */
export function skillName(cardId: string): string {
  const name = cardId.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '')
  return `connector-${name}`
}

/** A Skill that says what v2 changes for an agent: replies go by themselves, tools are for everything else. */
export function generatedSkill(cardId: string, title: string, tools: readonly ProjectedTool[]): Skill {
  const name = skillName(cardId)
  const list = tools.map((tool) => `- \`${tool.toolId}\`: ${tool.description}`)
  const markdown = [
    '---',
    `name: ${name}`,
    `description: How messages reach people through ${title}.`,
    '---',
    '',
    `# ${title}`,
    '',
    'Your answer to a message of this connector is delivered to the person automatically: just answer. Do not call a tool to',
    'reply, and do not repeat an answer through a tool, or the person gets it twice.',
    '',
    ...(list.length === 0
      ? ['There are no tools to call.']
      : ['Use a tool only for something the person did not just ask for, such as a reminder at a later time:', '', ...list]),
    '',
  ].join('\n')
  return skillOf(name, markdown)
}

/** A Skill that somebody wrote. Its header must carry the standard name; answers null when it does not. */
export function skillFromFile(cardId: string, markdown: string): Skill | null {
  const name = skillName(cardId)
  return nameInHeader(markdown) === name ? skillOf(name, markdown) : null
}

/** The name that a Skill's header gives; null where there is none. */
export function nameInHeader(markdown: string): string | null {
  const header = /^---\r?\n([\s\S]*?)\r?\n---/.exec(markdown)?.[1] ?? ''
  return /^name:\s*["']?([^"'\r\n]+?)["']?\s*$/m.exec(header)?.[1] ?? null
}

function skillOf(id: string, markdown: string): Skill {
  return { id, markdown, sha256: createHash('sha256').update(markdown, 'utf8').digest('hex') }
}
