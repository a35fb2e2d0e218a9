/** YAML text → data, and zod's issues → complete lines for a person: file, line, key, what is wrong, what would be right. */
import { LineCounter, isNode, isPair, isMap, parseDocument, type Document } from 'yaml'
import type { z } from 'zod'

export interface Yaml {
  readonly data: unknown
  /** Line (from 1) at which a key stands, or the nearest key above it that exists. */
  lineOf(path: readonly PropertyKey[]): number
  readonly problems: readonly string[]
}

/** Parses one YAML document. Syntax errors and keys that stand twice are problems. */
export function readYaml(file: string, text: string): Yaml {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true })
  const problems = document.errors.map((error) => `${file}:${lines.linePos(error.pos[0]).line}: ${error.message}`)
  return { data: problems.length > 0 ? null : document.toJS(), lineOf: (path) => lineOf(document, lines, path), problems }
}

/** One line per issue. `known` answers the keys that an object at a path may have, for a suggestion. */
export function describeIssues(file: string, yaml: Yaml, issues: readonly z.core.$ZodIssue[]): string[] {
  return issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => `${file}:${yaml.lineOf([...issue.path, key])}: ${pathText([...issue.path, key])}: unknown key`)
    }
    const missing = issue.code === 'invalid_type' && issue.input === undefined && !issue.message.startsWith('must') ? 'is missing' : issue.message
    return [`${file}:${yaml.lineOf(issue.path)}: ${pathText(issue.path)}: ${missing}`]
  })
}

export function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => (typeof part === 'number' ? `${text}[${part}]` : text === '' ? String(part) : `${text}.${String(part)}`), '') || 'the file'
}

function lineOf(document: Document, lines: LineCounter, path: readonly PropertyKey[]): number {
  for (let length = path.length; length > 0; length -= 1) {
    const parent = length === 1 ? document.contents : document.getIn(path.slice(0, length - 1), true)
    const last = path[length - 1]
    if (isMap(parent)) {
      const pair = parent.items.find((item) => isPair(item) && isNode(item.key) && String(item.key) === String(last))
      const offset = isNode(pair?.key) ? pair.key.range?.[0] : undefined
      if (offset !== undefined) return lines.linePos(offset).line
    }
    const node: unknown = document.getIn(path.slice(0, length), true)
    const offset = isNode(node) ? node.range?.[0] : undefined
    if (offset !== undefined) return lines.linePos(offset).line
  }
  return 1
}
