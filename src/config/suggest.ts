/** What to write instead of an unknown key. */
import { z } from 'zod'

/** The known key that was probably meant at this place of the schema, else all keys that may stand there. */
export function suggestion(schema: z.ZodType, path: readonly PropertyKey[]): string {
  const known = keysAt(schema, path.slice(0, -1))
  const key = String(path.at(-1)).toLowerCase().replaceAll('-', '_')
  const [nearest] = known.map((candidate) => ({ candidate, distance: distance(key, candidate) })).sort((a, b) => a.distance - b.distance)
  const isNear = nearest !== undefined && nearest.distance <= Math.max(2, Math.floor(key.length / 3)) && nearest.distance < nearest.candidate.length
  return isNear ? `did you mean ${nearest.candidate}?` : `must be one of ${known.join(', ')}`
}

/** Keys that may stand at a path, read off the schema itself, so that no second list of keys can go stale. */
function keysAt(schema: unknown, path: readonly PropertyKey[]): readonly string[] {
  const inner = unwrapped(schema)
  const [first, ...rest] = path
  if (inner instanceof z.ZodArray && first !== undefined) return keysAt(inner.element, rest)
  if (!(inner instanceof z.ZodObject)) return []
  if (first === undefined) return Object.keys(inner.shape)
  return Object.hasOwn(inner.shape, first) ? keysAt(inner.shape[String(first)], rest) : []
}

function unwrapped(schema: unknown): unknown {
  if (schema instanceof z.ZodPipe) return unwrapped(schema.in)
  const wraps = schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault || schema instanceof z.ZodNullable || schema instanceof z.ZodOptional
  return wraps ? unwrapped(schema.unwrap()) : schema
}

/** Levenshtein distance of two short keys. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      next[j] = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
