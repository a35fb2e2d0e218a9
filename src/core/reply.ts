/**
 * Outbound: a final becomes calls of the connector's tools, each at most once, and one truthful ack (v2 §5, §7; DESIGN §5).
 *
 * Here finals arrive, are told apart, and are answered; their steps run in reply-steps.ts, one final at a time per channel, in
 * order of arrival. The record of the end is durable before the ack leaves.
 */
import type { MessageId } from '../protocol/ids.js'
import { clearTyping } from './activity.js'
import { bindingOf, living } from './bind.js'
import { finishStream } from './delta.js'
import type { Effect, Verdict } from './effect.js'
import type { ArrivedFinal, ChannelEvent, FinalFile, Transmission } from './event.js'
import type { DeadLetterRecord, OutboundRecord } from './record.js'
import { endAbandoned, refusedOnce } from './reply-end.js'
import { advance, isBound, takeOver } from './reply-steps.js'
import { replayChanges, restarted } from './replay.js'
import type { Binding, Channel, FinalJob, Shared } from './state.js'
import { turnAwaitsFinal, turnWorked } from './turn.js'
import { turnChange } from './turn-record.js'

/** At most this many times `outbound_queue` finals may wait for their redelivery per channel. */
const DEFERRED_FACTOR = 10
/** After this long the store is asked again for a final that is to be given up. */
const ABANDON_AGAIN_MS = 500
/** Further transmissions of one running final that get an answer of their own: the latest ones. */
const MAX_REPEATS = 100

/** A final, or another transmission of it, has arrived. */
export function finalReceived(channel: Channel, shared: Shared, final: ArrivedFinal, now: number, out: Effect[]): void {
  const running = channel.jobs.get(final.messageId)
  if (running !== undefined) {
    if (differ(running.record?.contentHash ?? running.final.contentHash, final.contentHash)) return conflict(final, [], out)
    if (running.repeats.length >= MAX_REPEATS) running.repeats.shift()
    if (final.from !== null) running.repeats.push(final.from)
    return
  }
  // Bound at first sight, whatever becomes of it (DESIGN §4 rule 3): refused now, it may come again in somebody else's turn.
  const binding = bindingOf(channel, shared, final.messageId, now)
  clearTyping(channel, out)
  finishStream(channel, shared, final.messageId, now)
  const { outboundQueue, outboundWaitMs } = shared.limits
  // One that waits for its redelivery already takes no further place by coming.
  const oneMore = channel.deferred.has(final.messageId) ? 0 : 1
  if (channel.line.length >= outboundQueue || channel.deferred.size + oneMore > DEFERRED_FACTOR * outboundQueue) {
    if (isBound(binding)) out.push({ type: 'commit', changes: [turnChange(channel)], then: null })
    turnAwaitsFinal(channel, shared, final.messageId, binding.turn, now)
    return refuseForNow(final, [], 'busy', out)
  }
  line(channel, newJob(final, binding, null, now + outboundWaitMs), out)
}

/** A person sends a dead letter again, to where its answer was bound (DESIGN §4 rule 3). One that runs already is left alone. */
export function replayed(channel: Channel, shared: Shared, { letter, text }: Extract<ChannelEvent, { type: 'replayed' }>, now: number, out: Effect[]): void {
  if (channel.jobs.has(letter.messageId)) return
  // Its words may have been put together from its parts: only its record knows what it was.
  const final: ArrivedFinal = { from: null, messageId: letter.messageId, text, files: [], contentHash: null }
  const binding: Binding = { target: letter.target, turn: null, at: now }
  line(channel, newJob(final, binding, letter, now + shared.limits.outboundWaitMs), out)
}

function newJob(final: ArrivedFinal, binding: Binding, replayOf: DeadLetterRecord | null, waitUntil: number): FinalJob {
  return { final, binding, replayOf, repeats: [], waitUntil, phase: 'looking', uploadedRef: null, record: null, step: 0, reopened: false, ending: null }
}

function line(channel: Channel, job: FinalJob, out: Effect[]): void {
  channel.line.push(job)
  channel.jobs.set(job.final.messageId, job)
  out.push({ type: 'find_outbound', messageId: job.final.messageId, purpose: 'redelivery' })
}

/** Not a final at all: refused for good, and nothing of it is kept, so that a repaired one may use the id (v2 §10). */
export function finalInvalid(event: Extract<ChannelEvent, { type: 'final_invalid' }>, out: Effect[]): void {
  out.push({ type: 'received', direction: 'outbound' })
  out.push({ type: 'answer', to: event.from, messageId: event.messageId, verdict: { status: 'rejected', code: 'invalid_packet', message: event.message, retryable: false } })
  out.push(refusedOnce(event.messageId, 'invalid', 'invalid_packet'))
}

/** The store has said what it knows of a final. */
export function outboundFound(channel: Channel, shared: Shared, event: Extract<ChannelEvent, { type: 'outbound_found' }>, now: number, out: Effect[]): void {
  if (event.purpose === 'abandon') return abandon(channel, shared, event.messageId, event.record, now, out)
  const job = channel.jobs.get(event.messageId)
  if (job === undefined) return
  const { record } = event
  if (job.replayOf !== null) {
    foundForReplay(channel, shared, job, job.replayOf, record, now, out)
  } else if (record === null || (record.state === 'ended' && record.until <= now)) {
    job.phase = 'queued'
    firstSeen(channel, shared, job, now, out)
  } else if (differ(record.contentHash, job.final.contentHash)) {
    conflict(job.final, job.repeats, out)
    removeJob(channel, job)
  } else if (record.state === 'ended') {
    answerAll(job, rememberedVerdict(record), out)
    removeJob(channel, job)
  } else {
    job.record = { ...withFiles(record, job.final.files), transmissions: record.transmissions + 1 }
    job.phase = 'queued'
  }
  if (job.record !== null || job.ending !== null || !channel.jobs.has(event.messageId)) channel.bindings.delete(event.messageId)
  advance(channel, shared, now, out)
}

/**
 * A final that nobody has seen before is work of its turn (rules 4 and 5). Where it could go to the wrong person later, it is
 * taken over with its binding at once; with nobody to go to it ends.
 */
function firstSeen(channel: Channel, shared: Shared, job: FinalJob, now: number, out: Effect[]): void {
  const inTurn = channel.turn !== null && channel.turn.number === job.binding.turn
  if (channel.turn !== null && inTurn) turnWorked(channel.turn, 'final', now)
  if (living(channel, job.binding.target, now) === null || isBound(job.binding)) takeOver(channel, shared, job, now, out)
  if (inTurn) out.push({ type: 'commit', changes: [turnChange(channel)], then: null })
}

/** What was done stays done; what is in doubt or was refused is called again, because a person wants it so. */
function foundForReplay(channel: Channel, shared: Shared, job: FinalJob, letter: DeadLetterRecord, record: OutboundRecord | null, now: number, out: Effect[]): void {
  const live = record !== null && record.state !== 'ended'
  const nothingToCall = letter.steps.length === 0
  if (live || nothingToCall || letter.settled === 'sent' || record?.outcome === 'accepted') return removeJob(channel, job)
  job.record = restarted(channel.id, letter, record, shared.limits.ttlMs, now)
  job.phase = 'queued'
  if (record !== null) channel.endedOutboundCount -= 1
  out.push({ type: 'replayed', direction: 'outbound', deadLetterBytes: letter.bytes })
  out.push({ type: 'commit', changes: replayChanges(job.record, letter, record), then: null })
}

/** Whether two contents are known to differ. One whose files are gone, or that a person sent again, cannot be compared. */
const differ = (one: string | null, other: string | null): boolean => one !== null && other !== null && one !== other

/** The same bytes, uploaded again: what is still to be sent comes from the new references. */
function withFiles(record: OutboundRecord, files: readonly FinalFile[]): OutboundRecord {
  const steps = record.steps.map((step) => {
    const fresh = step.file === undefined ? undefined : files[step.file.index]
    return step.file === undefined || fresh === undefined || fresh.stored === null ? step : { ...step, file: { ...step.file, ref: fresh.ref } }
  })
  return { ...record, steps }
}

/** The store could not be asked: nothing is known, so nothing is done. What was to be given up is asked for again. */
export function lookupFailed(channel: Channel, shared: Shared, { messageId, purpose }: Extract<ChannelEvent, { type: 'lookup_failed' }>, now: number, out: Effect[]): void {
  if (purpose === 'abandon') return deferFirst(channel, messageId, now + ABANDON_AGAIN_MS)
  const job = channel.jobs.get(messageId)
  if (job === undefined) return
  turnAwaitsFinal(channel, shared, messageId, job.binding.turn, now)
  refuseForNow(job.final, job.repeats, 'store_unavailable', out)
  removeJob(channel, job)
  advance(channel, shared, now, out)
}

/** The record of the end, or of the refusal for now, is durable: answer every transmission (v2 §7). */
export function replyStored(channel: Channel, shared: Shared, messageId: MessageId, now: number, out: Effect[]): void {
  const job = channel.jobs.get(messageId)
  if (job === undefined || job.ending === null) return
  const { ending } = job
  out.push(ending.ended)
  if (ending.kind !== 'deferred') channel.bindings.delete(messageId)
  if (ending.kind === 'accepted') {
    answer([job.final.from], messageId, { status: 'accepted' }, out)
    answer(job.repeats, messageId, { status: 'duplicate' }, out)
  } else {
    answerAll(job, { status: 'rejected', code: ending.code, retryable: ending.kind === 'deferred' }, out)
  }
  removeJob(channel, job)
  advance(channel, shared, now, out)
}

/** To the front: what is due next stands first. */
function deferFirst(channel: Channel, messageId: MessageId, until: number): void {
  const others = [...channel.deferred].filter(([id]) => id !== messageId)
  channel.deferred.clear()
  channel.deferred.set(messageId, until)
  for (const [id, at] of others) channel.deferred.set(id, at)
}

function abandon(channel: Channel, shared: Shared, messageId: MessageId, record: OutboundRecord | null, now: number, out: Effect[]): void {
  channel.deferred.delete(messageId)
  if (record === null || record.state === 'ended' || channel.jobs.has(messageId)) return
  endAbandoned(channel, shared, record, now, out)
}

/** Deferred finals whose time is over are looked up and given up; waiting ones stop waiting for the connector. */
export function outboundDeadlines(channel: Channel, shared: Shared, now: number, out: Effect[]): void {
  for (const [messageId, until] of channel.deferred) {
    if (until > now) break
    if (channel.jobs.has(messageId)) continue
    channel.deferred.delete(messageId)
    out.push({ type: 'find_outbound', messageId, purpose: 'abandon' })
  }
  advance(channel, shared, now, out)
}

/** The next moment at which this stage has something to do, or Infinity. */
export function replyAt(channel: Channel): number {
  const head = channel.line[0]
  let at = head !== undefined && head.phase === 'queued' && !channel.legacyOpen ? head.waitUntil : Infinity
  for (const [messageId, until] of channel.deferred) {
    if (channel.jobs.has(messageId)) continue
    at = Math.min(at, until)
    break
  }
  return at
}

function conflict(final: ArrivedFinal, repeats: readonly Transmission[], out: Effect[]): void {
  out.push({ type: 'received', direction: 'outbound' })
  answer([final.from, ...repeats], final.messageId, { status: 'rejected', code: 'message_id_conflict', retryable: false }, out)
  out.push(refusedOnce(final.messageId, 'conflict', 'message_id_conflict'))
}

/** Refused before it was taken over: nothing is stored, xAgent redelivers it. */
function refuseForNow(final: ArrivedFinal, repeats: readonly Transmission[], code: string, out: Effect[]): void {
  answer([final.from, ...repeats], final.messageId, { status: 'rejected', code, retryable: true }, out)
  out.push(refusedOnce(final.messageId, 'deferred', code))
}

function rememberedVerdict(record: OutboundRecord): Verdict {
  if (record.ack?.status === 'accepted') return { status: 'duplicate' }
  return { status: 'rejected', code: record.ack?.code ?? 'target_delivery_failed', retryable: false }
}

function answerAll(job: FinalJob, verdict: Verdict, out: Effect[]): void {
  answer([job.final.from, ...job.repeats], job.final.messageId, verdict, out)
}

/** A replayed final has no transmission to answer: null. */
function answer(transmissions: readonly (Transmission | null)[], messageId: MessageId, verdict: Verdict, out: Effect[]): void {
  for (const to of transmissions) if (to !== null) out.push({ type: 'answer', to, messageId, verdict })
}

function removeJob(channel: Channel, job: FinalJob): void {
  channel.jobs.delete(job.final.messageId)
  const at = channel.line.indexOf(job)
  if (at !== -1) channel.line.splice(at, 1)
}
