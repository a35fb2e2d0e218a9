/** Secrets kept out of the file: `${VAR}` anywhere in a text, `file:/path` as a whole value (DESIGN §8). */
import { isAbsolute } from 'node:path'
import type { Problem } from './problem.js'
import { readText } from './scalars.js'
import type { YamlSource } from './yaml-source.js'

export type Environment = Readonly<Record<string, string | undefined>>

/** Fills in every reference of a source; what cannot be filled is a problem that names the key, never a value. */
export function fillSecrets(source: YamlSource, env: Environment): Problem[] {
  const problems: Problem[] = []
  source.fillTexts((value, path) => {
    const filled = value.startsWith('file:') ? fromFile(value.slice('file:'.length)) : fromEnvironment(value, env)
    problems.push(...filled.problems.map((text) => ({ path, text })))
    return filled.value
  })
  return problems
}

interface Filled {
  readonly value: string
  readonly problems: readonly string[]
}

function fromFile(path: string): Filled {
  if (!isAbsolute(path)) return { value: '', problems: ['"file:" is not followed by an absolute path; must be file:/path/to/a/secret'] }
  const content = readText(path)
  if (content.ok) return { value: content.text.replace(/[\r\n]+$/, ''), problems: [] }
  return { value: '', problems: [`the file ${path} cannot be read (${content.code}); must be a readable file that holds the value`] }
}

function fromEnvironment(text: string, env: Environment): Filled {
  const problems: string[] = []
  const value = text.replace(/\$\{([^}]*)\}?/g, (_reference, name: string) => {
    const found = env[name]
    if (!/^\w+$/.test(name)) problems.push('"${" is not followed by a name and "}"; must be ${NAME} of letters, digits and _')
    else if (found === undefined) problems.push(`the environment variable ${name} is not set; set it, or write the value in another way`)
    return found ?? ''
  })
  return { value, problems }
}
