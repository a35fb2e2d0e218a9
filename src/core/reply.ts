/**
 * Outbound: a final becomes calls of the connector's tools, each at most once, and one truthful ack (v2 §5, §7; DESIGN §5).
 *
 * One final at a time per channel, in order of arrival. The record of a step is durable before its call leaves, the record
 * of the end before the ack does. What was handed over without a clear answer is in doubt and never sent again.
 */
import type { MessageId } from '../protocol/ids.js'
import { digest } from '../translate/conversation.js'
import { planReply } from '../translate/reply-plan.js'
import { clearTyping } from './activity.js'
import { bindingOf, living } from './bind.js'
import { presetLabel } from './dead-letter.js'
import { finishStream } from './delta.js'
import type { Effect, Verdict } from './effect.js'
import type { ArrivedFinal, ChannelEvent, Transmission } from './event.js'
import { noted } from './journal.js'
import { stillLast } from './last-chat.js'
import { RECORD_VERSION, outboundKey, type Change, type DeadLetterRecord, type OutboundRecord, type OutboundStep, type ReplyTarget } from './record.js'
import { defer, end, endAbandoned, refusedOnce, type FinalEnd } from './reply-end.js'
import { replayChanges, restarted } from './replay.js'
import type { Binding, Channel, FinalJob, Shared } from './state.js'
import { turnChange, turnWorked } from './turn.js'

/** At most this many times `outbound_queue` finals may wait for their redelivery per channel. */
const DEFERRED_FACTOR = 10
/** Further transmissions of one running final that get an answer of their own: the latest ones. */
const MAX_REPEATS = 100

/** A final, or another transmission of it, has arrived. */
export function finalReceived(channel: Channel, shared: Shared, final: ArrivedFinal, now: number, out: Effect[]): void {
  const running = channel.jobs.get(final.messageId)
  if (running !== undefined) {
    if (running.final.contentHash !== final.contentHash) return conflict(final, [], out)
    if (running.repeats.length >= MAX_REPEATS) running.repeats.shift()
    if (final.from !== null) running.repeats.push(final.from)
    return
  }
  // Bound at first sight, whatever becomes of it (DESIGN §4 rule 3): refused now, it may come again in somebody else's turn.
  const binding = bindingOf(channel, shared, final.messageId, now)
  clearTyping(channel, out)
  const { outboundQueue, outboundWaitMs } = shared.limits
  if (channel.line.length >= outboundQueue || channel.deferred.size >= DEFERRED_FACTOR * outboundQueue) {
    if (isBound(binding)) out.push({ type: 'commit', changes: [turnChange(channel)], then: null })
    return refuseForNow(final, [], 'busy', out)
  }
  line(channel, { final, binding, replayOf: null, repeats: [], waitUntil: now + outboundWaitMs, phase: 'looking', record: null, step: 0, reopened: false, ending: null }, out)
}

/** A person sends a dead letter again, to where its answer was bound (DESIGN §4 rule 3). One that runs already is left alone. */
export function replayed(channel: Channel, shared: Shared, { letter, text }: Extract<ChannelEvent, { type: 'replayed' }>, now: number, out: Effect[]): void {
  if (channel.jobs.has(letter.messageId)) return
  const final: ArrivedFinal = { from: null, messageId: letter.messageId, text, files: 0, contentHash: digest([text]) }
  const binding: Binding = { target: letter.target, turn: null, at: now }
  line(channel, { final, binding, replayOf: letter, repeats: [], waitUntil: now + shared.limits.outboundWaitMs, phase: 'looking', record: null, step: 0, reopened: false, ending: null }, out)
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
  } else if (record.contentHash !== job.final.contentHash) {
    conflict(job.final, job.repeats, out)
    removeJob(channel, job)
  } else if (record.state === 'ended') {
    answerAll(job, rememberedVerdict(record), out)
    removeJob(channel, job)
  } else {
    job.record = { ...record, transmissions: record.transmissions + 1 }
    job.phase = 'queued'
  }
  if (job.record !== null || job.ending !== null || !channel.jobs.has(event.messageId)) channel.bindings.delete(event.messageId)
  advance(channel, shared, now, out)
}

/**
 * A final that nobody has seen before: it ends its stream, and is work of its turn (rules 4 and 5). Where it could go to the
 * wrong person later, it is taken over with its binding at once; with nobody to go to it ends.
 */
function firstSeen(channel: Channel, shared: Shared, job: FinalJob, now: number, out: Effect[]): void {
  finishStream(channel, shared, job.final.messageId)
  const inTurn = channel.turn !== null && channel.turn.number === job.binding.turn
  if (channel.turn !== null && inTurn) turnWorked(channel.turn, 'final', now)
  const target = living(job.binding.target, now)
  if (target !== null && isBound(job.binding) && job.final.files === 0) {
    job.record = plan(channel, shared, job, target, now)
    out.push({ type: 'received', direction: 'outbound' })
    out.push({ type: 'commit', changes: [putRecord(channel, job.record), ...(inTurn ? [turnChange(channel)] : [])], then: null })
  } else if (target === null) {
    end(channel, shared, job, NO_TARGET, now, out)
  } else if (inTurn) {
    out.push({ type: 'commit', changes: [turnChange(channel)], then: null })
  }
}

/** Whether it matters to whom it is bound: where all of a channel is one conversation, every answer goes there. */
const isBound = ({ target, turn }: Binding): boolean => turn !== null || (target !== null && target.conversation !== null)

/** What was done stays done; what is in doubt or was refused is called again, because a person wants it so. */
function foundForReplay(channel: Channel, shared: Shared, job: FinalJob, letter: DeadLetterRecord, record: OutboundRecord | null, now: number, out: Effect[]): void {
  const live = record !== null && record.state !== 'ended'
  if (live || letter.settled === 'sent' || record?.outcome === 'accepted') return removeJob(channel, job)
  job.record = restarted(channel.id, letter, record, job.final.contentHash, shared.limits.ttlMs, now)
  job.phase = 'queued'
  if (record !== null) channel.endedOutboundCount -= 1
  out.push({ type: 'replayed', direction: 'outbound', deadLetterBytes: letter.bytes })
  out.push({ type: 'commit', changes: replayChanges(job.record, letter, record), then: null })
}

/** The store could not be asked: nothing is known, so nothing is done. */
export function lookupFailed(channel: Channel, shared: Shared, messageId: MessageId, now: number, out: Effect[]): void {
  const job = channel.jobs.get(messageId)
  if (job === undefined) return
  refuseForNow(job.final, job.repeats, 'store_unavailable', out)
  removeJob(channel, job)
  advance(channel, shared, now, out)
}

/** Works on the first final in line, if it can go on; called after everything that could have changed that. */
export function advance(channel: Channel, shared: Shared, now: number, out: Effect[]): void {
  for (;;) {
    const job = channel.line[0]
    if (job === undefined || job.phase !== 'queued') return
    if (!begin(channel, shared, job, now, out)) return
  }
}

/** Answers whether the line has moved on, so that the next final may begin. */
function begin(channel: Channel, shared: Shared, job: FinalJob, now: number, out: Effect[]): boolean {
  if (job.record === null) {
    if (job.final.files > 0) return end(channel, shared, job, NO_FILES, now, out)
    const target = living(job.binding.target, now)
    if (target === null) return end(channel, shared, job, NO_TARGET, now, out)
    job.record = plan(channel, shared, job, target, now)
    out.push({ type: 'received', direction: 'outbound' })
    // Taken over with its binding even while nothing can be called: a redelivery goes to the same person (rule 3).
    if (!channel.legacyOpen) out.push({ type: 'commit', changes: [putRecord(channel, job.record)], then: null })
  }
  if (living(job.record.target, now) === null) return end(channel, shared, job, NO_TARGET, now, out)
  if (!channel.legacyOpen) return job.waitUntil > now ? false : defer(channel, shared, job, 'connector_unavailable', now, out)
  channel.deferred.delete(job.final.messageId)
  startStep(channel, shared, job, now, out)
  return false
}

const NO_TARGET: FinalEnd = { kind: 'refused', reason: 'no_reply_target', code: 'no_reply_target', detail: null }
const NO_FILES: FinalEnd = { kind: 'refused', reason: 'files_not_supported', code: 'files_not_supported', detail: null }
const MOVED: FinalEnd = { kind: 'refused', reason: 'reply_target_moved', code: 'reply_target_moved', detail: null }

function plan(channel: Channel, shared: Shared, { final, binding }: FinalJob, target: ReplyTarget, now: number): OutboundRecord {
  return {
    v: RECORD_VERSION, channelId: channel.id, messageId: final.messageId, contentHash: final.contentHash, takenAt: now, until: now + shared.limits.ttlMs,
    target, turn: binding.turn, steps: planReply(final.text, target, shared.dialect.preset), state: 'running', outcome: null, ack: null, transmissions: 1,
    preset: presetLabel(shared), journal: noted([], 0, 'taken'),
  }
}

/** Marks the first step that is not done as started; its call leaves when that is durable. */
function startStep(channel: Channel, shared: Shared, job: FinalJob, now: number, out: Effect[]): void {
  const record = job.record as OutboundRecord
  if (hasMoved(channel, record)) return void end(channel, shared, job, MOVED, now, out)
  const step = record.steps.findIndex((candidate) => candidate.state !== 'done')
  job.phase = 'running'
  job.step = step
  job.record = {
    ...record, state: 'running', steps: withState(record.steps, step, 'started'),
    journal: noted(record.journal, now - record.takenAt, 'started', `step ${step + 1} of ${record.steps.length}`),
  }
  out.push({ type: 'commit', changes: [putRecord(channel, job.record)], then: { type: 'step_started', messageId: record.messageId, step } })
}

/** The started record is durable: the call may leave, if it still goes to whom it is meant for. */
export function stepStarted(channel: Channel, shared: Shared, event: Extract<ChannelEvent, { type: 'step_started' }>, now: number, out: Effect[]): void {
  const job = channel.jobs.get(event.messageId)
  if (job?.record === null || job === undefined || job.step !== event.step) return
  if (hasMoved(channel, job.record)) end(channel, shared, notCalled(job), MOVED, now, out)
  else invoke(channel, job, out)
}

/** Checked before each step: another private chat may have written since (DESIGN §5). */
const hasMoved = (channel: Channel, { target }: OutboundRecord): boolean => target !== null && !stillLast(channel, target)

function notCalled(job: FinalJob): FinalJob {
  if (job.record !== null) job.record = { ...job.record, steps: withState(job.record.steps, job.step, 'waiting') }
  return job
}

function invoke(channel: Channel, job: FinalJob, out: Effect[]): void {
  const step = job.record?.steps[job.step]
  const target = job.record?.target
  if (step === undefined || !target) return
  out.push({
    type: 'invoke', messageId: job.final.messageId, step: job.step, tool: step.tool, arguments: step.arguments,
    toolCallId: `${channel.id}:${job.final.messageId}:${job.step + 1}`, proof: target.proof,
  })
}

/** The call has ended, one way or another. */
export function stepAnswered(channel: Channel, shared: Shared, event: Extract<ChannelEvent, { type: 'step_answered' }>, now: number, out: Effect[]): void {
  const job = channel.jobs.get(event.messageId)
  if (job === undefined || job.record === null || job.phase !== 'running' || job.step !== event.step) return
  const { outcome } = event
  if (outcome.reopen && !job.reopened) {
    job.reopened = true
    out.push({ type: 'reopen', messageId: event.messageId })
    return
  }
  if (outcome.class === 'auth') out.push({ type: 'auth_doubtful', reason: outcome.code })
  switch (outcome.class) {
    case 'sent':
      return stepDone(channel, shared, job, now, out)
    case 'temporary':
      defer(channel, shared, job, 'target_temporarily_unavailable', now, out, outcome.detail)
      break
    case 'permanent':
    case 'auth':
      end(channel, shared, job, { kind: 'refused', reason: 'rejected', code: 'target_delivery_failed', detail: detailOf(outcome) }, now, out)
      break
    case 'in_doubt':
      if (job.record.target?.inDoubt === 'retry') defer(channel, shared, job, 'target_temporarily_unavailable', now, out, outcome.detail)
      else end(channel, shared, job, { kind: 'in_doubt', reason: 'delivery_in_doubt', code: 'delivery_in_doubt', detail: detailOf(outcome) }, now, out)
      break
  }
  advance(channel, shared, now, out)
}

/** The channel was opened again after the connector had said that it does not know it (DESIGN §5). */
export function reopened(channel: Channel, shared: Shared, event: Extract<ChannelEvent, { type: 'reopened' }>, now: number, out: Effect[]): void {
  const job = channel.jobs.get(event.messageId)
  if (job === undefined || job.record === null || job.phase !== 'running') return
  job.record = { ...job.record, journal: noted(job.record.journal, now - job.record.takenAt, 'reopened') }
  if (event.connected && !hasMoved(channel, job.record)) return invoke(channel, job, out)
  if (event.connected) return void end(channel, shared, notCalled(job), MOVED, now, out)
  end(channel, shared, job, { kind: 'refused', reason: 'rejected', code: 'connection_not_authenticated', detail: null }, now, out)
  advance(channel, shared, now, out)
}

function stepDone(channel: Channel, shared: Shared, job: FinalJob, now: number, out: Effect[]): void {
  const record = job.record as OutboundRecord
  const steps = withState(record.steps, job.step, 'done')
  job.record = { ...record, steps, journal: noted(record.journal, now - record.takenAt, 'done', `step ${job.step + 1}`) }
  if (steps.some((step) => step.state !== 'done')) startStep(channel, shared, job, now, out)
  else end(channel, shared, job, { kind: 'accepted' }, now, out)
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

const withState = (steps: readonly OutboundStep[], at: number, state: OutboundStep['state']): OutboundStep[] =>
  steps.map((step, index) => (index === at ? { ...step, state } : step))

const putRecord = (channel: Channel, record: OutboundRecord): Change => ({ op: 'put', kind: 'outbound', key: outboundKey(channel.id, record.messageId), value: record })

const detailOf = (outcome: { code: string; detail: string | null }): string => (outcome.detail === null ? outcome.code : `${outcome.code}: ${outcome.detail}`)
