/**
 * The steps of a final: calls of the connector's tools, each at most once (v2 §5, DESIGN §5). The record of a step is durable
 * before its call leaves. What was handed over without a clear answer is in doubt and never sent again.
 */
import type { JsonObject } from '../protocol/packet.js'
import { linkInstead, planReply } from '../translate/reply-plan.js'
import { isOfAccount, living } from './bind.js'
import { presetLabel } from './dead-letter.js'
import type { Effect } from './effect.js'
import type { ChannelEvent } from './event.js'
import { noted } from './journal.js'
import { stillLast } from './last-chat.js'
import { RECORD_VERSION, outboundKey, type Change, type OutboundRecord, type OutboundStep } from './record.js'
import { defer, end, type FinalEnd } from './reply-end.js'
import type { Binding, Channel, FinalJob, Shared } from './state.js'

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
  if (job.record === null && !takeOver(channel, shared, job, now, out)) return false
  if (job.record === null || living(channel, job.record.target, now) === null) return end(channel, shared, job, NO_TARGET, now, out)
  if (!channel.legacyOpen) return job.waitUntil > now ? false : defer(channel, shared, job, 'connector_unavailable', now, out)
  // It is stored with its plan where that matters, and has had no answer: xAgent sends it again.
  if (shared.draining) return false
  channel.deferred.delete(job.final.messageId)
  startStep(channel, shared, job, now, out)
  return false
}

/**
 * Takes a final over with its binding and its plan, even while nothing can be called: a redelivery goes to the same person
 * (DESIGN §4 rule 3). One that cannot be sent at all ends; answers whether it goes on.
 */
export function takeOver(channel: Channel, shared: Shared, job: FinalJob, now: number, out: Effect[]): boolean {
  const { final, binding } = job
  const target = living(channel, binding.target, now)
  if (target === null) return end(channel, shared, job, NO_TARGET, now, out)
  const plan = planReply(final.text, final.files, target, shared.dialect.preset, shared.fileLink)
  if (!plan.ok) return end(channel, shared, job, { kind: 'refused', reason: plan.code === 'files_not_supported' ? plan.code : 'rejected', code: plan.code, detail: null }, now, out)
  job.record = {
    v: RECORD_VERSION, channelId: channel.id, messageId: final.messageId, contentHash: final.contentHash, takenAt: now, until: now + shared.limits.ttlMs,
    target, turn: binding.turn, steps: plan.steps, state: 'running', outcome: null, ack: null, transmissions: 1,
    preset: presetLabel(shared), journal: noted([], 0, 'taken'),
  }
  out.push({ type: 'received', direction: 'outbound' })
  // One that begins at once is stored with its first step.
  if (isBound(binding) || !channel.legacyOpen || final.files.length > 0) out.push({ type: 'commit', changes: [putRecord(channel, job.record)], then: null })
  return true
}

const NO_TARGET: FinalEnd = { kind: 'refused', reason: 'no_reply_target', code: 'no_reply_target', detail: null }
const MOVED: FinalEnd = { kind: 'refused', reason: 'reply_target_moved', code: 'reply_target_moved', detail: null }

/** Whether it matters to whom it is bound: where all of a channel is one conversation, every answer goes there. */
export const isBound = ({ target, turn }: Binding): boolean => turn !== null || (target !== null && target.conversation !== null)

/**
 * Marks the first step that is not done as started; its call leaves when that is durable. A file is uploaded before, so that a
 * crash during that is not in doubt (DESIGN §5).
 */
function startStep(channel: Channel, shared: Shared, job: FinalJob, now: number, out: Effect[]): void {
  const record = job.record as OutboundRecord
  const lost = addressLost(channel, record)
  if (lost !== null) return void end(channel, shared, job, lost, now, out)
  const step = record.steps.findIndex((candidate) => candidate.state !== 'done')
  const file = record.steps[step]?.file
  job.step = step
  if (file !== undefined && job.uploadedRef === null) {
    job.phase = 'uploading'
    out.push({ type: 'upload', messageId: record.messageId, step, ref: file.ref, fields: file.uploadFields })
    return
  }
  job.phase = 'running'
  job.record = {
    ...record, state: 'running', steps: withState(record.steps, step, 'started'),
    journal: noted(record.journal, now - record.takenAt, 'started', `step ${step + 1} of ${record.steps.length}`),
  }
  out.push({ type: 'commit', changes: [putRecord(channel, job.record)], then: { type: 'step_started', messageId: record.messageId, step } })
}

/** The step's file is with the connector, or will not be: refused for good it is sent as a link, where the preset wants that. */
export function uploaded(channel: Channel, shared: Shared, event: Extract<ChannelEvent, { type: 'uploaded' }>, now: number, out: Effect[]): void {
  const job = channel.jobs.get(event.messageId)
  if (job === undefined || job.record === null || job.phase !== 'uploading' || job.step !== event.step) return
  const { result } = event
  if (result.ok) {
    job.uploadedRef = result.ref
    startStep(channel, shared, job, now, out)
  } else if (result.temporary) {
    defer(channel, shared, job, 'target_temporarily_unavailable', now, out, result.code)
  } else {
    const link = result.code === 'file_not_available' ? null : linkInstead(job.record, job.step, shared.dialect.preset, shared.fileLink)
    job.record = link ?? job.record
    const code = result.code === 'file_not_available' ? result.code : 'file_refused'
    if (link === null) end(channel, shared, job, { kind: 'refused', reason: 'rejected', code, detail: result.code }, now, out)
    else startStep(channel, shared, job, now, out)
  }
  advance(channel, shared, now, out)
}

/** The started record is durable: the call may leave, if it still goes to whom it is meant for. */
export function stepStarted(channel: Channel, shared: Shared, event: Extract<ChannelEvent, { type: 'step_started' }>, now: number, out: Effect[]): void {
  const job = channel.jobs.get(event.messageId)
  if (job?.record === null || job === undefined || job.step !== event.step) return
  const lost = addressLost(channel, job.record)
  if (lost === null) invoke(channel, job, out)
  else end(channel, shared, notCalled(job), lost, now, out)
}

/** Checked before each step: another account may have signed in since, another private chat may have written (DESIGN §5). */
function addressLost(channel: Channel, { target }: OutboundRecord): FinalEnd | null {
  if (target === null || !isOfAccount(channel, target)) return NO_TARGET
  return stillLast(channel, target) ? null : MOVED
}

function notCalled(job: FinalJob): FinalJob {
  if (job.record !== null) job.record = { ...job.record, steps: withState(job.record.steps, job.step, 'waiting') }
  return job
}

function invoke(channel: Channel, job: FinalJob, out: Effect[]): void {
  const step = job.record?.steps[job.step]
  const target = job.record?.target
  if (step === undefined || !target) return
  out.push({
    type: 'invoke', messageId: job.final.messageId, step: job.step, tool: step.tool, arguments: argumentsOf(step, job.uploadedRef),
    toolCallId: `${channel.id}:${job.final.messageId}:${job.step + 1}`, proof: target.proof,
  })
}

const argumentsOf = ({ arguments: args, file }: OutboundStep, uploadedRef: string | null): JsonObject =>
  file === undefined || uploadedRef === null ? args : { ...args, [file.argument]: uploadedRef }

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
  const lost = addressLost(channel, job.record)
  if (lost !== null) return void end(channel, shared, notCalled(job), lost, now, out)
  if (event.result === 'connected') return invoke(channel, job, out)
  if (event.result === 'no_answer') defer(channel, shared, job, 'target_temporarily_unavailable', now, out, 'the channel could not be opened again')
  else end(channel, shared, job, { kind: 'refused', reason: 'rejected', code: 'connection_not_authenticated', detail: null }, now, out)
  advance(channel, shared, now, out)
}

function stepDone(channel: Channel, shared: Shared, job: FinalJob, now: number, out: Effect[]): void {
  const record = job.record as OutboundRecord
  const steps = withState(record.steps, job.step, 'done')
  job.uploadedRef = null
  job.record = { ...record, steps, journal: noted(record.journal, now - record.takenAt, 'done', `step ${job.step + 1}`) }
  const next = steps.find((step) => step.state !== 'done')
  if (next === undefined) return void end(channel, shared, job, { kind: 'accepted' }, now, out)
  // The start of a call is stored with what was done before it; an upload starts nothing, and may last long.
  if (next.file !== undefined) out.push({ type: 'commit', changes: [putRecord(channel, job.record)], then: null })
  startStep(channel, shared, job, now, out)
}

const withState = (steps: readonly OutboundStep[], at: number, state: OutboundStep['state']): OutboundStep[] =>
  steps.map((step, index) => (index === at ? { ...step, state } : step))

const putRecord = (channel: Channel, record: OutboundRecord): Change => ({ op: 'put', kind: 'outbound', key: outboundKey(channel.id, record.messageId), value: record })

const detailOf = (outcome: { code: string; detail: string | null }): string => (outcome.detail === null ? outcome.code : `${outcome.code}: ${outcome.detail}`)
