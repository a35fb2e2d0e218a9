/** Problems of a configuration: from zod's issues to complete lines for a person. */
import type { z } from 'zod'
import { knownKeys, nearestKey } from './known-keys.js'
import type { KeyPath, Source } from './yaml-source.js'

/** `text` reads "what is wrong; what would be right". */
export interface Problem {
  readonly path: KeyPath
  readonly text: string
}

/** Keys whose values are never repeated, wherever they stand; as are those that a secret was filled into. */
const SECRET_KEYS: readonly string[] = ['api_key', 'api_keys', 'read_token', 'write_token', 'store', 'url', 'public_url']

/** Every issue as a problem; `base` is where the schema's value stands in the source. */
export function problemsOf(error: z.ZodError, schema: z.ZodType, base: KeyPath = []): Problem[] {
  return error.issues.flatMap((issue) => {
    const path = [...base, ...issue.path]
    if (issue.code !== 'unrecognized_keys') return [{ path, text: issue.message }]
    const known = knownKeys(schema, issue.path)
    return issue.keys.map((key) => ({ path: [...path, key], text: unknownKey(key, known) }))
  })
}

/** `<file>:<line>: <key.path>: <what is wrong>; <what would be right>` */
export function renderProblem(problem: Problem, source: Source): string {
  return `${source.locate(problem.path)}: ${problem.text.replace('{value}', () => shown(problem.path, source))}`
}

function unknownKey(key: string, known: readonly string[]): string {
  const nearest = nearestKey(key, known)
  return `unknown key; ${nearest === null ? `must be one of ${known.join(', ')}` : `did you mean ${nearest}?`}`
}

function shown(path: KeyPath, source: Source): string {
  const value = path.reduce<unknown>((inner, key) => (inner as Record<PropertyKey, unknown> | undefined | null)?.[key], source.raw)
  if (value === null) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a group of keys'
  const secret = path.some((key) => SECRET_KEYS.includes(String(key))) || !source.isLiteral(path)
  return secret || String(value).length > 40 ? 'this value' : JSON.stringify(value)
}
