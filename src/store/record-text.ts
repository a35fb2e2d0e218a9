/** Values as the stores keep them: JSON text, so that nothing is shared with a caller, and what is not JSON data is left out. */
import type { Change, RecordKind } from '../core/record.js'
import { StoreError } from '../protocol/errors.js'
import { checkKey } from './key.js'

/** What a change leaves under its key; null = nothing. Throws RangeError for a key that breaks the port's rule. */
export function textOf(change: Change): string | null {
  checkKey(change.key)
  return change.op === 'put' ? JSON.stringify(change.value ?? null) : null
}

/** The value in a stored text. Throws StoreError `record_unreadable`, which names the record and never its content. */
export function valueOf(text: string, kind: RecordKind, key: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new StoreError('record_unreadable', `the stored ${kind} "${key}" cannot be read`)
  }
}
