/** How an inbound message ends: out of the state, into the completed ids, into a dead letter where the outcome says so. */
import { deadLetter, presetLabel } from './dead-letter.js'
import type { Effect } from './effect.js'
import { note, noted } from './journal.js'
import type { DeadLetterReason, InboundOutcome } from './outcome.js'
import { RECORD_VERSION, completedKey, inboundBodyKey, inboundKey, orderKey, type Change, type CompletedRecord, type DeadLetterRecord, type InboundRecord, type JournalEntry } from './record.js'
import type { Arrival, Channel, Shared, Waiting } from './state.js'
import { turnMessageEnded } from './turn.js'

/** Completed ids per channel are bounded by this many times `max_messages` (DESIGN §4 Dedupe). */
export const COMPLETED_FACTOR = 10

export interface InboundEnd {
  readonly outcome: InboundOutcome
  readonly reason: DeadLetterReason | null
  readonly code: string | null
}

/** Puts a message at its place by order key, and into every index. */
export function indexWaiting(channel: Channel, shared: Shared, message: Waiting): void {
  insertSorted(channel.waiting, message, (a, b) => a.order - b.order)
  insertSorted(channel.expiries, message, (a, b) => a.expiresAt - b.expiresAt)
  channel.byId.set(message.messageId, message)
  channel.bySeq.set(message.seq, message)
  const queue = channel.byConversation.get(message.conversation) ?? { list: [], count: 0 }
  channel.byConversation.set(message.conversation, queue)
  insertSorted(queue.list, message, (a, b) => a.order - b.order)
  queue.count += 1
  channel.waitingBytes += message.bytes
  shared.budget.usedBytes += message.bytes
}

/** Ends a waiting message. One batch: out of pending, into completed, and the dead letter if there is one. */
export function endWaiting(channel: Channel, shared: Shared, message: Waiting, end: InboundEnd, now: number, out: Effect[]): void {
  unindex(channel, shared, message)
  note(message.journal, now - message.takenAt, 'ended', end.code ?? end.outcome)
  const changes: Change[] = [{ op: 'delete', kind: 'inbound', key: inboundKey(message.seq) }]
  let dead: DeadLetterRecord | null = null
  if (end.reason === null) {
    changes.push({ op: 'delete', kind: 'body', key: inboundBodyKey(message.seq) })
  } else {
    const letter = deadLetter(shared, {
      ...deadFacts(message, end, end.reason), expiresAt: message.expiresAt, certainty: message.certainty, attempts: message.attempts,
      journal: message.journal, textBytes: message.bytes, body: { storedAt: inboundBodyKey(message.seq) },
    }, now)
    dead = letter.record
    changes.push(...letter.changes)
  }
  changes.push(...completedChanges(channel, shared, message, end, message.journal, now, out), ...turnMessageEnded(channel, message, end.outcome, now))
  out.push({ type: 'commit', changes, then: null })
  out.push({
    type: 'ended', direction: 'inbound', ...end, detail: null, certainty: message.certainty, messageId: message.messageId,
    originalId: message.originalId, attempts: message.attempts, ageMs: now - message.takenAt, inLedger: true, deadLetterId: dead?.id ?? null, deadLetterBytes: dead?.bytes ?? 0,
  })
}

/** Ends a push that never waited. Only one that would have waited leaves a completed id (DESIGN §4 Dedupe). */
export function endArrival(channel: Channel, shared: Shared, arrival: Arrival, end: InboundEnd, now: number, out: Effect[]): void {
  const { push, at } = arrival
  const journal = noted(noted([], 0, 'taken'), now - at, 'ended', end.code ?? end.outcome)
  const facts = { channelId: channel.id, messageId: push.messageId, originalId: push.originalId, conversation: push.conversation, takenAt: at }
  let dead: DeadLetterRecord | null = null
  if (end.reason !== null && push.kind !== 'not_forwarded') {
    const letter = deadLetter(shared, {
      ...deadFacts(facts, end, end.reason), expiresAt: at + shared.limits.ttlMs, certainty: 'certain', attempts: 0, journal, textBytes: arrival.bytes, body: { put: push.body },
    }, now)
    dead = letter.record
    const remembered = push.kind === 'message' && end.outcome !== 'conflict'
    const completed = remembered ? completedChanges(channel, shared, { ...facts, contentHash: push.contentHash, preset: presetLabel(shared) }, end, journal, now, out) : []
    out.push({ type: 'commit', changes: [...letter.changes, ...completed], then: null })
  }
  out.push({
    type: 'ended', direction: 'inbound', ...end, detail: null, certainty: 'certain', messageId: push.messageId, originalId: push.originalId,
    attempts: 0, ageMs: now - at, inLedger: true, deadLetterId: dead?.id ?? null, deadLetterBytes: dead?.bytes ?? 0,
  })
}

/** The stored form of a waiting message. */
export function inboundRecord(message: Waiting): InboundRecord {
  return {
    v: RECORD_VERSION, seq: message.seq, order: message.order, channelId: message.channelId, messageId: message.messageId, originalId: message.originalId,
    conversation: message.conversation, target: message.target, contentHash: message.contentHash, bytes: message.bytes, createdAt: message.createdAt,
    takenAt: message.takenAt, expiresAt: message.expiresAt, files: message.files, preparing: message.preparing, hasWords: message.hasWords, attempts: message.attempts,
    rejections: message.rejections, certainty: message.certainty, lastCode: message.lastCode, preset: message.preset, journal: [...message.journal],
  }
}

type Identified = Pick<Waiting, 'channelId' | 'messageId' | 'originalId' | 'takenAt'>

function deadFacts(message: Identified & Pick<Waiting, 'conversation'>, end: InboundEnd, reason: DeadLetterReason) {
  return {
    direction: 'inbound' as const, reason, code: end.code, message: null, channelId: message.channelId, messageId: message.messageId,
    originalId: message.originalId, conversation: message.conversation, takenAt: message.takenAt, steps: [], target: null,
  }
}

function completedChanges(
  channel: Channel, shared: Shared, message: Identified & Pick<Waiting, 'contentHash' | 'preset'>, end: InboundEnd, journal: readonly JournalEntry[], now: number, out: Effect[],
): Change[] {
  const until = now + shared.limits.ttlMs
  const record: CompletedRecord = {
    v: RECORD_VERSION, channelId: channel.id, messageId: message.messageId, originalId: message.originalId, contentHash: message.contentHash,
    outcome: end.outcome, code: end.code, takenAt: message.takenAt, endedAt: now, until, preset: message.preset, journal: [...journal],
  }
  channel.completedCount += 1
  if (channel.completedCount > COMPLETED_FACTOR * shared.limits.maxMessages) out.push({ type: 'trim_completed', kind: 'completed' })
  const key = completedKey(channel.id, message.messageId)
  return [
    { op: 'put', kind: 'completed', key, value: record },
    { op: 'put', kind: 'completed_order', key: orderKey(channel.id, until, message.messageId), value: key },
  ]
}

/** Ended messages leave the ordered lists when they reach the front, so that ending one costs no search. */
function unindex(channel: Channel, shared: Shared, message: Waiting): void {
  message.ended = true
  message.inFlight = null
  channel.inFlight.delete(message)
  channel.byId.delete(message.messageId)
  channel.bySeq.delete(message.seq)
  const queue = channel.byConversation.get(message.conversation)
  if (queue !== undefined) {
    queue.count -= 1
    if (queue.count === 0) channel.byConversation.delete(message.conversation)
    while (queue.list[0]?.ended === true) queue.list.shift()
  }
  channel.waitingBytes -= message.bytes
  shared.budget.usedBytes -= message.bytes
  while (channel.waiting[0]?.ended === true) channel.waiting.shift()
  while (channel.expiries[0]?.ended === true) channel.expiries.shift()
}

/** New entries nearly always belong at the end. */
function insertSorted(list: Waiting[], message: Waiting, compare: (a: Waiting, b: Waiting) => number): void {
  let at = list.length
  while (at > 0 && compare(list[at - 1] as Waiting, message) > 0) at -= 1
  list.splice(at, 0, message)
}
