/** YAML text → data, and what is wrong with it → complete lines for a person: file, line, key, what is wrong, what would be right. */
import { LineCounter, isNode, isPair, isMap, parseDocument, visit, type Document } from 'yaml'
import type { z } from 'zod'
import { suggestion } from './suggest.js'

export type KeyPath = readonly PropertyKey[]

export interface Problem {
  readonly path: KeyPath
  /** "what is wrong; what would be right", without anything secret. */
  readonly text: string
}

export interface Yaml {
  /** As written: references to secrets are not resolved. */
  readonly data: unknown
  /** Line (from 1) at which a key stands, or the nearest key above it that exists. */
  lineOf(path: KeyPath): number
  readonly problems: readonly string[]
}

/** Syntax errors in our own words: the library's can repeat the text, which can hold a secret. */
const SYNTAX: ReadonlyMap<string, string> = new Map([
  ['DUPLICATE_KEY', 'this key stands twice; each key may stand once'],
  ['TAB_AS_INDENT', 'a tab indents this line; must be spaces'],
  ['BAD_INDENT', 'the indentation does not fit the lines around it; keys of one group must start in one column'],
  ['MISSING_CHAR', 'a quote, bracket or other character is missing; close what was opened'],
  ['BLOCK_AS_IMPLICIT_KEY', 'a value that ends with a colon reads as a key; put it in quotes'],
  ['MULTIPLE_DOCS', 'a second document starts here; a file holds one'],
])
/** Keys whose values are never repeated. */
const SECRET_KEYS: readonly PropertyKey[] = ['api_key', 'api_keys', 'read_token', 'write_token', 'store', 'url', 'public_url']
const LONGEST_SHOWN = 40

/** Parses one YAML document. Syntax errors, keys that stand twice and unknown tags are problems. */
export function readYaml(file: string, text: string): Yaml {
  const counter = new LineCounter()
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false, uniqueKeys: true })
  const problems = [...document.errors, ...document.warnings].map(({ code, pos }) => {
    return `${file}:${counter.linePos(pos[0]).line}: ${SYNTAX.get(code) ?? `not valid YAML (${code.toLowerCase().replaceAll('_', ' ')}); must be valid YAML`}`
  })
  if (problems.length > 0) return { data: null, lineOf: () => 1, problems }
  try {
    return { data: document.toJS(), lineOf: (path) => lineOf(document, counter, path), problems }
  } catch {
    return { data: null, lineOf: () => 1, problems: [`${file}:${firstAlias(document, counter)}: an alias (*name) stands for nothing, or for too much; write the value itself`] }
  }
}

function firstAlias(document: Document, counter: LineCounter): number {
  let line = 1
  visit(document, {
    Alias: (_key, node) => {
      line = counter.linePos(node.range?.[0] ?? 0).line
      return visit.BREAK
    },
  })
  return line
}

/** Every issue of a schema as a problem; `data` as written, so that what a reference stands for cannot be shown. */
export function problemsOf(schema: z.ZodType, data: unknown, issues: readonly z.core.$ZodIssue[]): Problem[] {
  return issues.flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => [...issue.path, key]).map((path) => ({ path, text: `unknown key; ${suggestion(schema, path)}` }))
    }
    return [{ path: issue.path, text: `${whatIsWrong(data, issue.path)}; ${whatIsRight(issue)}` }]
  })
}

/** Complete lines. */
export function problemLines(file: string, yaml: Yaml, problems: readonly Problem[]): string[] {
  return problems.map(({ path, text }) => `${file}:${yaml.lineOf(path)}: ${pathText(path)}: ${text}`)
}

export function pathText(path: KeyPath): string {
  return path.reduce<string>((text, part) => (typeof part === 'number' ? `${text}[${part}]` : text === '' ? String(part) : `${text}.${String(part)}`), '') || 'the file'
}

function whatIsWrong(data: unknown, path: KeyPath): string {
  const value = path.reduce(valueIn, data)
  if (value === undefined) return 'is missing'
  if (value === null) return 'is empty'
  if (Array.isArray(value)) return value.length === 0 ? 'is an empty list' : 'is a list'
  if (typeof value === 'object') return 'is a group of keys'
  const shown = JSON.stringify(value)
  return `${shown.length > LONGEST_SHOWN || path.some((key) => SECRET_KEYS.includes(key)) ? 'this value' : shown} cannot be used`
}

/** Our schemas say it in their messages; where one leaves it to zod, its type does. */
function whatIsRight(issue: z.core.$ZodIssue): string {
  if (issue.message.startsWith('must')) return issue.message
  if (issue.code === 'invalid_type') return `must be ${TYPES.get(issue.expected) ?? issue.expected}`
  if (issue.code === 'invalid_value') return `must be ${issue.values.map(String).join(' or ')}`
  return issue.code === 'invalid_union' ? 'must be one of the forms that the documentation lists' : 'must not be empty'
}

const TYPES: ReadonlyMap<string, string> = new Map([
  ['string', 'a text'], ['boolean', 'true or false'], ['object', 'a group of keys'], ['record', 'a group of keys'], ['array', 'a list'], ['number', 'a number'],
])

function valueIn(value: unknown, key: PropertyKey): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? (value as Record<PropertyKey, unknown>)[key] : undefined
}

function lineOf(document: Document, counter: LineCounter, path: KeyPath): number {
  for (let length = path.length; length > 0; length -= 1) {
    const parent = length === 1 ? document.contents : document.getIn(path.slice(0, length - 1), true)
    const last = path[length - 1]
    if (isMap(parent)) {
      const pair = parent.items.find((item) => isPair(item) && isNode(item.key) && String(item.key) === String(last))
      const offset = isNode(pair?.key) ? pair.key.range?.[0] : undefined
      if (offset !== undefined) return counter.linePos(offset).line
    }
    const node: unknown = document.getIn(path.slice(0, length), true)
    const offset = isNode(node) ? node.range?.[0] : undefined
    if (offset !== undefined) return counter.linePos(offset).line
  }
  return 1
}
