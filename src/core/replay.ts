/** Sending a dead letter again: its record comes back to life with what is still to be done (DESIGN §4 rule 3, §8). */
import type { ChannelId } from '../protocol/ids.js'
import { noted } from './journal.js'
import { RECORD_VERSION, orderKey, outboundKey, type Change, type DeadLetterRecord, type OutboundRecord, type OutboundStep } from './record.js'

/** The record under which a dead letter runs again. A step without an answer is called again: a person decided so. */
export function restarted(
  channelId: ChannelId, letter: DeadLetterRecord, ended: OutboundRecord | null, ttlMs: number, now: number,
): OutboundRecord {
  const { target } = letter
  const name = target?.textArgument ?? 'text'
  const steps = letter.steps.map((step): OutboundStep => ({
    ...step, state: step.state === 'done' ? 'done' : 'waiting',
    arguments: step.kind === 'file' ? { ...target?.file?.arguments } : { ...target?.arguments, [name]: step.arguments[name] ?? '' },
    ...(step.file !== undefined && { file: { ...step.file, uploadFields: target?.file?.uploadFields ?? {} } }),
  }))
  return {
    v: RECORD_VERSION, channelId, messageId: letter.messageId, contentHash: ended?.contentHash ?? null, takenAt: letter.takenAt, until: now + ttlMs,
    target, turn: null, steps, state: 'running', outcome: null, ack: null, transmissions: letter.attempts, preset: letter.preset,
    journal: noted(letter.journal, now - letter.takenAt, 'replayed'),
  }
}

/** It is pending again: neither a dead letter nor among the ended ones. */
export function replayChanges(record: OutboundRecord, letter: DeadLetterRecord, ended: OutboundRecord | null): Change[] {
  const changes: Change[] = [
    { op: 'put', kind: 'outbound', key: outboundKey(record.channelId, record.messageId), value: record },
    { op: 'delete', kind: 'dead_letter', key: letter.id },
  ]
  if (letter.bodyKey !== null) changes.push({ op: 'delete', kind: 'body', key: letter.bodyKey })
  if (ended !== null) changes.push({ op: 'delete', kind: 'outbound_order', key: orderKey(record.channelId, ended.until, record.messageId) })
  return changes
}
