/** Keys that are accepted because a later version uses them; `check-config` says so for each that a file sets. */
import type { GatewayConfig } from './schema.js'

const KEYS: readonly (readonly string[])[] = [
  ['admin', 'write_token'], ['admin', 'show_texts'], ['delivery', 'idle_close'], ['limits', 'legacy_bytes_per_second'],
]
const PRESET_KEYS: readonly string[] = ['pause_reading']

/** Paths of the keys that the file sets and that this version does not use yet. */
export function notYetKeys(data: unknown, { connectors }: GatewayConfig): (readonly PropertyKey[])[] {
  const paths: (readonly PropertyKey[])[] = []
  for (const path of KEYS) if (valueAt(data, path) !== undefined) paths.push(path)
  for (const index of connectors.keys()) {
    for (const key of PRESET_KEYS) if (valueAt(data, ['connectors', index, key]) !== undefined) paths.push(['connectors', index, key])
  }
  return paths
}

function valueAt(data: unknown, path: readonly PropertyKey[]): object | undefined {
  let value: unknown = data
  for (const part of path) {
    if (typeof value !== 'object' || value === null) return undefined
    value = (value as Record<PropertyKey, unknown>)[part]
  }
  return value as object | undefined
}
