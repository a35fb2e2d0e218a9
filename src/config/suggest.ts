/** "Did you mean": the known key that is nearest to an unknown one. */
import { configSchema } from './schema.js'

/** For a line about an unknown key: what would be right, or "" where nothing is near. */
export function suggestion(line: string): string {
  const [, path] = /: (\S+): unknown key$/.exec(line) ?? []
  if (path === undefined) return ''
  const key = path.split('.').at(-1) ?? ''
  const near = [...knownKeys()].map((known) => ({ known, distance: distance(key, known) })).sort((a, b) => a.distance - b.distance)[0]
  return near !== undefined && near.distance <= Math.max(2, Math.floor(key.length / 3)) ? `; did you mean ${near.known}?` : '; see docs/configuration.md for the keys there are'
}

function knownKeys(): Set<string> {
  const keys = new Set<string>()
  collect(configSchema, keys)
  return keys
}

/** Walks zod's own description of the schema, so that no second list of keys can go stale. */
function collect(schema: unknown, keys: Set<string>): void {
  if (typeof schema !== 'object' || schema === null) return
  const { shape, def } = schema as { shape?: Record<string, unknown>; def?: { in?: unknown; innerType?: unknown; element?: unknown } }
  for (const [key, inner] of Object.entries(shape ?? {})) {
    keys.add(key)
    collect(inner, keys)
  }
  for (const inner of [def?.in, def?.innerType, def?.element]) collect(inner, keys)
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
