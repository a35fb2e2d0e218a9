/** Reading what a connector sent without insisting, and saying what was amiss. */
import { isId, nestsAtMost } from '../protocol/packet.js'

/** Names the deviations whose condition holds; the names are metric labels, so they come from the code only. */
export function deviationsOf(conditions: Readonly<Record<string, boolean>>): string[] {
  return Object.entries(conditions).filter(([, holds]) => holds).map(([name]) => name)
}

/** An id, or null where the value cannot be one. */
export function idOrNull(value: unknown): string | null {
  return isId(value) ? value : null
}

/** Deepest nesting of a document that is kept or projected: encoding it again is recursive. */
const MAX_DEPTH = 24

/** Whether a document can be kept: no Card or Descriptor of a connector nests deeper. */
export const isKeepable = (document: unknown): boolean => nestsAtMost(document, MAX_DEPTH)
