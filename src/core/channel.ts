/**
 * One channel: the whole way of a message, in stage order.
 *
 *   pushed ─ retain ─ turn ─ deliver ─▶ xAgent   acked ends it
 *   final  ─ bind ─ plan ─ steps ─▶ connector    reply_stored answers it
 *
 * `step` is all there is: it changes the state in place, says what is to be done, and names the next moment to look again.
 */
import type { ChannelEvent } from './event.js'
import type { Effect } from './effect.js'
import { ackTimeouts, acked, deliverAt, errorAnswered, expire, left, opened, pump, sendFailed } from './deliver.js'
import { finalInvalid, finalReceived, lookupFailed, outboundDeadlines, outboundFound, replayed, replyAt, replyStored } from './reply.js'
import { advance, reopened, stepAnswered, stepStarted, uploaded } from './reply-steps.js'
import { lateAnswer } from './reply-end.js'
import { activityReceived, clearTyping, typingAt, typingTimeout } from './activity.js'
import { deltaReceived } from './delta.js'
import { writerUnknown } from './last-chat.js'
import { releaseHeld } from './reorder.js'
import { settleTurn, turnAt, turnStored } from './turn.js'
import { arrive, completedFound, filesSettled, rebound, takenDurable } from './retain.js'
import type { Channel, Shared } from './state.js'

export interface StepResult {
  /** To be performed in this order. */
  readonly effects: readonly Effect[]
  /** Gateway clock, ms: call again with `look` then, unless another event comes first. Infinity = never. */
  readonly nextAt: number
}

/** One event at one moment. Deadlines that have passed are dealt with before the event, ready messages leave after it. */
export function step(channel: Channel, shared: Shared, event: ChannelEvent, now: number): StepResult {
  const out: Effect[] = []
  deadlines(channel, shared, now, out)
  handle(channel, shared, event, now, out)
  outboundDeadlines(channel, shared, now, out)
  deadlines(channel, shared, now, out)
  pump(channel, shared, now, out)
  return { effects: out, nextAt: Math.min(deliverAt(channel, shared, now), replyAt(channel), turnAt(channel, shared, now), typingAt(channel)) }
}

/** What is due by now, in stage order. */
function deadlines(channel: Channel, shared: Shared, now: number, out: Effect[]): void {
  ackTimeouts(channel, shared, now)
  expire(channel, shared, now, out)
  releaseHeld(channel, shared, now)
  typingTimeout(channel, now, out)
  if (settleTurn(channel, shared, now, out)) clearTyping(channel, out)
}

function handle(channel: Channel, shared: Shared, event: ChannelEvent, now: number, out: Effect[]): void {
  switch (event.type) {
    case 'pushed': return arrive(channel, shared, event, now, out)
    case 'completed_found': return completedFound(channel, shared, event, now, out)
    case 'taken_durable': return takenDurable(channel, event)
    case 'files_settled': return filesSettled(channel, shared, event, now, out)
    case 'opened': return opened(channel, shared, event, now, out)
    case 'left': return left(channel, shared, event.link, now, out)
    case 'send_failed': return sendFailed(channel, shared, event, now, out)
    case 'drained': return drained(channel, event)
    case 'acked': return acked(channel, shared, event, now, out)
    case 'rebound': return rebound(channel, out)
    case 'turn_stored': return turnStored(channel, event.seq)
    case 'error_answered': return errorAnswered(channel, shared, event, now, out)

    case 'final_received': return finalReceived(channel, shared, event.final, now, out)
    case 'delta_received': return delta(channel, shared, event, now, out)
    case 'activity_received': return activityReceived(channel, shared, event.status, now, out)
    case 'replayed': return replayed(channel, shared, event, now, out)
    case 'final_invalid': return finalInvalid(event, out)
    case 'outbound_found': return outboundFound(channel, shared, event, now, out)
    case 'lookup_failed': return lookupFailed(channel, shared, event, now, out)
    case 'legacy_changed': return legacyChanged(channel, shared, event, now, out)
    case 'uploaded': return uploaded(channel, shared, event, now, out)
    case 'step_started': return stepStarted(channel, shared, event, now, out)
    case 'step_answered': return stepAnswered(channel, shared, event, now, out)
    case 'reopened': return reopened(channel, shared, event, now, out)
    case 'reply_stored': return replyStored(channel, shared, event.messageId, now, out)
    case 'late_answer': return lateAnswer(channel, event, now, out)

    case 'flush_allowed':
    case 'look': return
  }
}

/** Text begins to be visible: nobody need be shown typing any more (v2 §8). */
function delta(channel: Channel, shared: Shared, event: Extract<ChannelEvent, { type: 'delta_received' }>, now: number, out: Effect[]): void {
  if (deltaReceived(channel, shared, event, now, out)) clearTyping(channel, out)
}

function drained(channel: Channel, event: Extract<ChannelEvent, { type: 'drained' }>): void {
  if (channel.link?.id === event.link) channel.congested = false
}

function legacyChanged(channel: Channel, shared: Shared, event: Extract<ChannelEvent, { type: 'legacy_changed' }>, now: number, out: Effect[]): void {
  channel.legacyOpen = event.open
  if (!event.open) writerUnknown(channel)
  advance(channel, shared, now, out)
}
