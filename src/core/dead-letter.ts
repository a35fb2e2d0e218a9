/** Dead letters: messages that ended without being delivered, kept with their reason (DESIGN §1, §8). */
import { RECORD_VERSION, deadLetterBodyKey, deadLetterKey, type Change, type DeadLetterRecord, type MessageBody } from './record.js'
import type { Shared } from './state.js'

/** Fixed part of a dead letter's size: its fields without words, journal and steps. */
const RECORD_BYTES = 400

export type DeadLetterFacts = Omit<DeadLetterRecord, 'v' | 'id' | 'endedAt' | 'bytes' | 'settled' | 'preset' | 'bodyKey'> & {
  /** Size of the words that are kept with it. */
  readonly textBytes: number
  /** Where the words are stored already, or the words themselves, to be stored with it. */
  readonly body: { readonly storedAt: string } | { readonly put: MessageBody }
}

/** The record of a dead letter and the changes that store it. */
export function deadLetter(shared: Shared, facts: DeadLetterFacts, now: number): { record: DeadLetterRecord; changes: Change[] } {
  const { textBytes, body, ...rest } = facts
  const id = deadLetterKey(now, `${shared.run}-${shared.nextDeadLetter.toString(36)}`)
  shared.nextDeadLetter += 1
  const bodyKey = 'storedAt' in body ? body.storedAt : deadLetterBodyKey(id)
  const record: DeadLetterRecord = {
    v: RECORD_VERSION, id, endedAt: now, settled: null, preset: presetLabel(shared), bodyKey, ...rest,
    bytes: RECORD_BYTES + textBytes + 40 * rest.journal.length + rest.steps.reduce((sum, step) => sum + JSON.stringify(step.arguments).length, 0),
  }
  const changes: Change[] = [{ op: 'put', kind: 'dead_letter', key: id, value: record }]
  if ('put' in body) changes.push({ op: 'put', kind: 'body', key: bodyKey, value: body.put })
  return { record, changes }
}

/** The preset that shaped a record, with its version. */
export const presetLabel = (shared: Shared): string => `${shared.dialect.preset.name}@${shared.dialect.preset.version}`
