/** The keys that a schema knows at a place, and the one that was probably meant. */
import { z } from 'zod'
import type { KeyPath } from './yaml-source.js'

/** Keys that the schema knows at a path; empty where it takes any. */
export function knownKeys(schema: unknown, path: KeyPath): readonly string[] {
  const inner = unwrap(schema)
  const [first, ...rest] = path
  if (inner instanceof z.ZodObject) {
    if (first === undefined) return Object.keys(inner.shape)
    return Object.hasOwn(inner.shape, first) ? knownKeys(inner.shape[String(first)], rest) : []
  }
  return inner instanceof z.ZodArray && first !== undefined ? knownKeys(inner.element, rest) : []
}

/** The known key that is a typing mistake away; null when none is near. */
export function nearestKey(key: string, known: readonly string[]): string | null {
  const [nearest] = known
    .map((candidate) => ({ candidate, distance: editDistance(key.toLowerCase().replaceAll('-', '_'), candidate) }))
    .filter(({ candidate, distance }) => distance <= Math.max(2, Math.floor(candidate.length / 4)) && distance < candidate.length)
    .sort((a, b) => a.distance - b.distance)
  return nearest?.candidate ?? null
}

function unwrap(schema: unknown): unknown {
  if (schema instanceof z.ZodPipe) return unwrap(schema.in)
  if (schema instanceof z.ZodPrefault || schema instanceof z.ZodNullable || schema instanceof z.ZodOptional) return unwrap(schema.unwrap())
  return schema
}

/** Levenshtein distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (const [i, left] of [...a].entries()) {
    const next = [i + 1]
    for (const [j, right] of [...b].entries()) {
      next.push(Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, (row[j] ?? 0) + (left === right ? 0 : 1)))
    }
    row = next
  }
  return row[b.length] ?? 0
}
