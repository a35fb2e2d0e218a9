/** Reading what a connector sent without insisting, and saying what was amiss. */
import { isId } from '../protocol/packet.js'

/** Names the deviations whose condition holds; the names are metric labels, so they come from the code only. */
export function deviationsOf(conditions: Readonly<Record<string, boolean>>): string[] {
  return Object.entries(conditions).filter(([, holds]) => holds).map(([name]) => name)
}

/** An id, or null where the value cannot be one. */
export function idOrNull(value: unknown): string | null {
  return isId(value) ? value : null
}
