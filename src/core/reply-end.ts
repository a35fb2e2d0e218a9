/** How a final ends, or is put off: its record, its dead letter, and the answer that follows when both are durable. */
import type { MessageId } from '../protocol/ids.js'
import { living } from './bind.js'
import { deadLetter, presetLabel } from './dead-letter.js'
import type { Effect, Ended } from './effect.js'
import type { ChannelEvent } from './event.js'
import { COMPLETED_FACTOR } from './inbound-end.js'
import { noted } from './journal.js'
import type { Certainty, DeadLetterReason, OutboundOutcome } from './outcome.js'
import { RECORD_VERSION, orderKey, outboundKey, type Change, type DeadLetterRecord, type OutboundRecord, type OutboundStep } from './record.js'
import type { Channel, FinalJob, Shared } from './state.js'
import { turnAwaitsFinal } from './turn.js'

/** Late answers can settle this many in-doubt finals of a channel. */
const MAX_DOUBTS = 100

export type FinalEnd =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'refused' | 'in_doubt'; readonly reason: DeadLetterReason; readonly code: string; readonly detail: string | null }

/**
 * Ends a final for good. Everything is one batch: its record with the remembered ack, the order of its forgetting, and the
 * dead letter. Always answers false: the line moves on when that is durable.
 */
export function end(channel: Channel, shared: Shared, job: FinalJob, how: FinalEnd, now: number, out: Effect[]): false {
  if (job.record === null) out.push({ type: 'received', direction: 'outbound' })
  const record = job.record ?? bare(channel, shared, job, now)
  const outcome: OutboundOutcome = how.kind === 'refused' ? 'rejected' : how.kind
  const refusal = how.kind === 'accepted' ? null : how
  const certainty: Certainty = how.kind === 'in_doubt' ? 'unknown' : 'certain'
  const dead = refusal === null ? null : deadOf(channel, shared, record, { ...refusal, certainty }, job.final.text, now)
  if (how.kind === 'in_doubt' && dead !== null) rememberDoubt(channel, dead.record)
  const ended = endedEffect(record, { outcome, reason: refusal?.reason ?? null, code: refusal?.code ?? null, detail: refusal?.detail ?? null, certainty }, dead?.record ?? null, now)
  job.phase = 'storing'
  job.ending = refusal === null ? { kind: 'accepted', ended } : { kind: 'refused', code: refusal.code, ended }
  const ack = refusal === null ? ({ status: 'accepted', code: null } as const) : ({ status: 'rejected', code: refusal.code } as const)
  out.push({
    type: 'commit',
    changes: [...endChanges(channel, shared, record, outcome, ack, now, out), ...(dead?.changes ?? [])],
    then: { type: 'reply_stored', messageId: record.messageId },
  })
  return false
}

/** Refuses a final for now: what was done stays done, the rest waits for its redelivery (DESIGN §5). Always answers false. */
export function defer(channel: Channel, shared: Shared, job: FinalJob, code: string, now: number, out: Effect[], detail: string | null = null): false {
  const record = job.record as OutboundRecord
  // Nobody redelivers what a person has sent again: it is a dead letter once more.
  if (job.replayOf !== null) return end(channel, shared, job, { kind: 'refused', reason: 'rejected', code, detail }, now, out)
  turnAwaitsFinal(channel, shared, record.messageId, record.turn, now)
  const until = now + shared.limits.ttlMs
  const deferred: OutboundRecord = {
    ...record, state: 'deferred', until, steps: record.steps.map((step) => (step.state === 'started' ? { ...step, state: 'waiting' } : step)),
    journal: noted(record.journal, now - record.takenAt, 'refused', code),
  }
  channel.deferred.delete(record.messageId)
  channel.deferred.set(record.messageId, until)
  job.record = deferred
  job.phase = 'storing'
  job.ending = { kind: 'deferred', code, ended: { ...endedEffect(record, { outcome: 'deferred', reason: null, code, detail, certainty: 'certain' }, null, now), inLedger: false } }
  out.push({
    type: 'commit', changes: [{ op: 'put', kind: 'outbound', key: outboundKey(channel.id, record.messageId), value: deferred }],
    then: { type: 'reply_stored', messageId: record.messageId },
  })
  return false
}

/** Ends a deferred final that was never redelivered: what was sent is known, the rest is given up. */
export function endAbandoned(channel: Channel, shared: Shared, record: OutboundRecord, now: number, out: Effect[]): void {
  const how = { reason: 'abandoned_partial', code: null, certainty: 'certain' } as const
  const dead = deadOf(channel, shared, record, { ...how, detail: null }, textOf(record), now)
  const changes = endChanges(channel, shared, record, 'abandoned', { status: 'rejected', code: 'abandoned_partial' }, now, out)
  out.push({ type: 'commit', changes: [...changes, ...dead.changes], then: null })
  out.push(endedEffect(record, { ...how, outcome: 'abandoned', detail: null }, dead.record, now))
}

/** Ends a final whose call was under way when the gateway died: what it did is unknown (DESIGN §5). */
export function endInDoubtAtLoad(channel: Channel, shared: Shared, record: OutboundRecord, now: number, out: Effect[]): void {
  const how = { reason: 'delivery_in_doubt', code: 'delivery_in_doubt', certainty: 'unknown' } as const
  const detail = 'the gateway stopped between the call and its answer'
  const dead = deadOf(channel, shared, record, { ...how, detail }, textOf(record), now)
  const changes = endChanges(channel, shared, record, 'in_doubt', { status: 'rejected', code: 'delivery_in_doubt' }, now, out)
  out.push({ type: 'commit', changes: [...changes, ...dead.changes], then: null })
  out.push(endedEffect(record, { ...how, outcome: 'in_doubt', detail }, dead.record, now))
}

/** A late answer corrects what the dead letter says and bars its replay; ack and ledger stay (DESIGN §3 Links). */
export function lateAnswer(channel: Channel, event: Extract<ChannelEvent, { type: 'late_answer' }>, now: number, out: Effect[]): void {
  const doubt = channel.doubts.get(event.messageId)
  if (doubt === undefined || event.outcome.class === 'in_doubt') return
  channel.doubts.delete(event.messageId)
  const settled = event.outcome.class === 'sent' ? 'sent' : 'not_sent'
  const record: DeadLetterRecord = {
    ...doubt, certainty: 'certain', settled, journal: noted(doubt.journal, now - doubt.takenAt, 'late_answer', `step ${event.step + 1} ${settled}`),
  }
  out.push({ type: 'commit', changes: [{ op: 'put', kind: 'dead_letter', key: record.id, value: record }], then: null })
}

/** The outcome of a final that is refused without a record of its own. */
export function refusedOnce(messageId: MessageId, outcome: 'conflict' | 'invalid' | 'deferred', code: string): Ended {
  return {
    type: 'ended', direction: 'outbound', outcome, reason: null, code, detail: null, certainty: 'certain', messageId, originalId: null,
    attempts: 1, ageMs: 0, inLedger: outcome !== 'deferred', deadLetterId: null, deadLetterBytes: 0,
  }
}

function bare(channel: Channel, shared: Shared, job: FinalJob, now: number): OutboundRecord {
  return {
    v: RECORD_VERSION, channelId: channel.id, messageId: job.final.messageId, contentHash: job.final.contentHash, takenAt: now, until: now + shared.limits.ttlMs,
    target: living(channel, job.binding.target, now), turn: job.binding.turn, steps: [], state: 'running', outcome: null, ack: null, transmissions: 1, preset: presetLabel(shared), journal: noted([], 0, 'taken'),
  }
}

/** An ended record keeps its ack and its life, not its words and not its target. */
function endChanges(
  channel: Channel, shared: Shared, record: OutboundRecord, outcome: OutboundOutcome, ack: NonNullable<OutboundRecord['ack']>, now: number, out: Effect[],
): Change[] {
  const until = now + shared.limits.ttlMs
  const key = outboundKey(channel.id, record.messageId)
  channel.deferred.delete(record.messageId)
  channel.turn?.refused.delete(record.messageId)
  channel.endedOutboundCount += 1
  if (channel.endedOutboundCount > COMPLETED_FACTOR * shared.limits.maxMessages) out.push({ type: 'trim_completed', kind: 'outbound' })
  const ended: OutboundRecord = {
    ...record, state: 'ended', outcome, ack, until, steps: record.steps.map(bareStep), target: null,
    journal: noted(record.journal, now - record.takenAt, 'ended', ack.code ?? outcome),
  }
  return [
    { op: 'put', kind: 'outbound', key, value: ended },
    { op: 'put', kind: 'outbound_order', key: orderKey(channel.id, until, record.messageId), value: key },
  ]
}

function deadOf(
  channel: Channel, shared: Shared, record: OutboundRecord, how: { reason: DeadLetterReason; code: string | null; detail: string | null; certainty: Certainty }, text: string, now: number,
): ReturnType<typeof deadLetter> {
  return deadLetter(shared, {
    direction: 'outbound', reason: how.reason, code: how.code, message: how.detail, certainty: how.certainty, channelId: channel.id, messageId: record.messageId,
    originalId: null, conversation: record.target?.conversation ?? null, takenAt: record.takenAt, expiresAt: now, attempts: record.transmissions,
    steps: record.steps.map(withoutAddress(record)), target: record.target, journal: record.journal, textBytes: Buffer.byteLength(text), body: { put: { text, files: [] } },
  }, now)
}

/** Only text and file of a step are kept with a dead letter; recipients and tokens are in its target alone. */
const withoutAddress = (record: OutboundRecord) => (step: OutboundStep): OutboundStep => {
  const name = record.target?.textArgument ?? 'text'
  return step.kind === 'file' ? bareStep(step) : { ...step, arguments: { [name]: step.arguments[name] ?? '' } }
}

function bareStep({ file, ...step }: OutboundStep): OutboundStep {
  return { ...step, arguments: {}, ...(file !== undefined && { file: { ...file, uploadFields: {} } }) }
}

function textOf(record: OutboundRecord): string {
  const name = record.target?.textArgument ?? 'text'
  return record.steps.filter(({ kind }) => kind === 'text').map((step) => String(step.arguments[name] ?? '')).join('\n')
}

function endedEffect(record: OutboundRecord, how: Pick<Ended, 'outcome' | 'reason' | 'code' | 'detail' | 'certainty'>, dead: DeadLetterRecord | null, now: number): Ended {
  return {
    type: 'ended', direction: 'outbound', ...how, messageId: record.messageId, originalId: null, attempts: record.transmissions,
    ageMs: now - record.takenAt, inLedger: true, deadLetterId: dead?.id ?? null, deadLetterBytes: dead?.bytes ?? 0,
  }
}

function rememberDoubt(channel: Channel, record: DeadLetterRecord): void {
  const [oldest] = channel.doubts.keys()
  if (channel.doubts.size >= MAX_DOUBTS && oldest !== undefined) channel.doubts.delete(oldest)
  channel.doubts.set(record.messageId, record)
}
