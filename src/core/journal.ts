/** A message's bounded life: first entries and latest ones are kept, what was in between is counted (DESIGN §2). */
import type { JournalEntry } from './record.js'

const MAX_ENTRIES = 32
const KEPT_AT_START = 8

/** Adds an entry in place. `at` is ms since the message's takeover. */
export function note(journal: JournalEntry[], at: number, what: JournalEntry['what'], text?: string): void {
  if (journal.length >= MAX_ENTRIES) journal.splice(KEPT_AT_START, 1)
  journal.push({ at: Math.max(0, Math.round(at)), what, ...(text !== undefined && { note: text }) })
}

/** A longer journal by one entry, for records that are replaced rather than changed. */
export function noted(journal: readonly JournalEntry[], at: number, what: JournalEntry['what'], text?: string): JournalEntry[] {
  const copy = [...journal]
  note(copy, at, what, text)
  return copy
}
