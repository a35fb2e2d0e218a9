/**
 * Stage "deliver": waiting messages go to xAgent in order, until an ack ends them (v2 §7, §9; DESIGN §4 Order, Ack).
 *
 * A message is in flight from its transmission to its ack, its ack timeout or the end of its link, whichever is first. While
 * in flight it is neither expired nor evicted.
 */
import type { AckVerdict } from '../protocol/im-v2.js'
import type { LinkId, PacketId } from '../protocol/ids.js'
import { clearTyping } from './activity.js'
import type { Effect, OrphanReason, RedeliveryCause } from './effect.js'
import type { ChannelEvent } from './event.js'
import { leaveFlush, mayFlush, settleFlush } from './flush.js'
import { endWaiting, inboundRecord } from './inbound-end.js'
import { backoffMs } from './jitter.js'
import { note } from './journal.js'
import { inboundKey, type Change } from './record.js'
import { isHeld, releaseAt } from './reorder.js'
import type { Channel, Shared, Waiting } from './state.js'
import { activityUnknown, enterTurn, needsPlace, turnNotTransmitted, turnRefused, turnTransmitted } from './turn.js'
import { candidates } from './turn-order.js'

/** `channel.open` is xAgent's "I am back": backoff resets and the backlog flows in order (DESIGN §4 Return). */
export function opened(channel: Channel, shared: Shared, event: Extract<ChannelEvent, { type: 'opened' }>, now: number, out: Effect[]): void {
  loseLink(channel, shared, now, out)
  channel.link = { id: event.link, as: event.as }
  channel.openedAt = now
  channel.congested = false
  channel.backlogUntil = shared.nextSeq - 1
  for (const message of channel.bySeq.values()) {
    message.notBefore = 0
    message.failures = 0
  }
}

/** The link is gone, or another one has opened the channel since: what was in flight is unknown, not delivered (v2 §7). */
export function left(channel: Channel, shared: Shared, link: LinkId, now: number, out: Effect[]): void {
  if (channel.link?.id === link) loseLink(channel, shared, now, out)
}

function loseLink(channel: Channel, shared: Shared, now: number, out: Effect[]): void {
  landAll(channel, 'link_lost', now)
  leaveFlush(channel, shared.gate, out)
  activityUnknown(channel)
  clearTyping(channel, out)
  channel.link = null
}

/** Ends everything whose retention is over and that is not in flight (v1 §7.1). */
export function expire(channel: Channel, shared: Shared, now: number, out: Effect[]): void {
  if ((channel.expiries[0]?.expiresAt ?? Infinity) > now) return
  const due = channel.expiries.filter((message) => message.expiresAt <= now && !message.ended && message.inFlight === null)
  for (const message of due) endWaiting(channel, shared, message, { outcome: 'expired', reason: 'expired', code: message.lastCode }, now, out)
}

/** No ack in time: not delivered, as far as anybody knows; it costs no attempt (DESIGN §4 Ack). */
export function ackTimeouts(channel: Channel, shared: Shared, now: number): void {
  for (const message of [...channel.inFlight]) {
    if (message.inFlight !== null && message.inFlight.ackBy <= now) {
      note(message.journal, now - message.takenAt, 'no_ack')
      land(channel, message, 'ack_timeout')
      retryLater(shared, message, now)
    }
  }
}

/** Transmits as many messages as the window allows, in order; a head that must wait holds back its own channel only. */
export function pump(channel: Channel, shared: Shared, now: number, out: Effect[]): void {
  if (channel.link === null || channel.congested || shared.draining) return
  const heldUp = transmitReady(channel, shared, channel.link, now, out)
  settleFlush(channel, shared.gate, heldUp, out)
}

/** Answers whether the head is held up by a time, so that the channel gives up its place among those that flush. */
function transmitReady(channel: Channel, shared: Shared, link: NonNullable<Channel['link']>, now: number, out: Effect[]): boolean {
  for (const message of candidates(channel, shared)) {
    if (channel.inFlight.size + channel.entering.size >= shared.limits.window) return false
    if (isOnItsWay(channel, message)) continue
    if (message.notBefore > now || isHeld(channel, message)) return true
    if (message.preparing > 0) return false
    const enters = needsPlace(channel, shared, message)
    if ((!enters && awaitsCommit(message)) || !mayFlush(channel, shared.gate)) return false
    if (enters) enterTurn(channel, message, now, out)
    else transmit(channel, shared, message, link, now, out)
  }
  return false
}

const isOnItsWay = (channel: Channel, message: Waiting): boolean => message.inFlight !== null || channel.entering.has(message)

/**
 * The first transmission and the commit start together, except where an answer could need what is being written: a
 * per-message target. A redelivery always has a durable record (DESIGN §4 Durable).
 */
function awaitsCommit(message: Waiting): boolean {
  return !message.durable && (message.target?.perMessage === true || message.transmissions > 0)
}

function transmit(channel: Channel, shared: Shared, message: Waiting, link: NonNullable<Channel['link']>, now: number, out: Effect[]): void {
  message.transmissions += 1
  message.attempts += 1
  message.certainty = 'unknown'
  message.inFlight = { link: link.id, sentAt: now, ackBy: now + shared.limits.ackTimeoutMs }
  channel.inFlight.add(message)
  const { cause } = message
  note(message.journal, now - message.takenAt, 'transmitted', cause ?? undefined)
  turnTransmitted(channel, message, now)
  message.cause = null
  out.push({
    type: 'transmit', link: link.id, as: link.as, packetId: packetIdOf(shared, message), seq: message.seq, messageId: message.messageId, createdAt: message.createdAt, cause,
  })
}

/** The frame did not leave: the transmission did not happen. */
export function sendFailed(channel: Channel, shared: Shared, event: Extract<ChannelEvent, { type: 'send_failed' }>, now: number, out: Effect[]): void {
  const message = channel.bySeq.get(event.seq)
  if (message === undefined) return
  channel.inFlight.delete(message)
  message.inFlight = null
  message.attempts -= 1
  message.cause = event.cause
  if (message.attempts === 0) message.certainty = 'certain'
  turnNotTransmitted(channel, message)
  switch (event.reason) {
    case 'full':
    case 'closed':
      // Until the link drains, or is said to be gone: trying again at once would go round in circles.
      channel.congested = true
      return
    case 'too_large':
      return endWaiting(channel, shared, message, { outcome: 'too_large', reason: 'message_too_large', code: null }, now, out)
    case 'store_unavailable':
      return retryLater(shared, message, now)
    case 'body_lost':
      return endWaiting(channel, shared, message, { outcome: 'empty', reason: 'empty_message', code: 'body_lost' }, now, out)
  }
}

/** An ack matches by reply_to (any transmission of this run), channel and message_id, all three (v2 §7). */
export function acked(channel: Channel, shared: Shared, event: Extract<ChannelEvent, { type: 'acked' }>, now: number, out: Effect[]): void {
  const match = transmissionOf(channel, shared, event.replyTo)
  if (match === null) return orphan('unknown_packet', out)
  const { message, latest } = match
  if (message.messageId !== event.verdict.messageId) return orphan('other_message', out)
  if (event.verdict.status === 'rejected' && event.verdict.protocolFault) out.push({ type: 'ack_fault' })
  if (latest && message.inFlight !== null) out.push({ type: 'ack_latency', ms: now - message.inFlight.sentAt })
  applyVerdict(channel, shared, message, latest, event.verdict, now, out)
}

/** Whether a packet id names a transmission that may still be acked: such acks do not count against the packet limit. */
export function isOpenTransmission(channel: Channel, shared: Shared, replyTo: PacketId): boolean {
  return transmissionOf(channel, shared, replyTo) !== null
}

function applyVerdict(channel: Channel, shared: Shared, message: Waiting, latest: boolean, verdict: AckVerdict, now: number, out: Effect[]): void {
  if (verdict.status !== 'rejected') {
    message.certainty = 'certain'
    note(message.journal, now - message.takenAt, 'acked', verdict.status)
    return endWaiting(channel, shared, message, { outcome: verdict.status, reason: null, code: null }, now, out)
  }
  note(message.journal, now - message.takenAt, 'refused', verdict.code)
  message.lastCode = verdict.code
  const busy = verdict.code === 'channel_busy' && verdict.saidRetryable !== false
  if (!verdict.retryable && !busy) {
    message.certainty = 'certain'
    return endWaiting(channel, shared, message, { outcome: 'rejected', reason: 'rejected', code: verdict.code }, now, out)
  }
  // A temporary refusal of an earlier transmission says nothing about the one that is under way.
  const refused = turnRefused(channel, message, latest)
  if (!latest || message.inFlight === null) return storeRefusal(message, refused, out)
  message.certainty = 'certain'
  land(channel, message, busy ? 'busy' : 'rejected')
  if (!busy) message.rejections += 1
  if (shared.limits.maxAttempts > 0 && message.rejections >= shared.limits.maxAttempts) {
    return endWaiting(channel, shared, message, { outcome: 'rejected', reason: 'max_attempts', code: verdict.code }, now, out)
  }
  retryLater(shared, message, now)
  storeRefusal(message, refused, out)
}

function storeRefusal(message: Waiting, turn: readonly Change[], out: Effect[]): void {
  if (message.durable) out.push({ type: 'commit', changes: [{ op: 'put', kind: 'inbound', key: inboundKey(message.seq), value: inboundRecord(message) }, ...turn], then: null })
}

/** A packet of type `error` that answers ours (DESIGN §4 Ack): invalid is permanent, not open waits, the rest is temporary. */
export function errorAnswered(channel: Channel, shared: Shared, event: Extract<ChannelEvent, { type: 'error_answered' }>, now: number, out: Effect[]): void {
  const match = transmissionOf(channel, shared, event.replyTo)
  if (match === null) return orphan('unknown_packet', out)
  const { message, latest } = match
  note(message.journal, now - message.takenAt, 'refused', event.code)
  message.lastCode = event.code
  if (event.code === 'invalid_packet') {
    message.certainty = 'certain'
    return endWaiting(channel, shared, message, { outcome: 'rejected', reason: 'rejected', code: event.code }, now, out)
  }
  if (!latest || message.inFlight === null) return
  message.certainty = 'certain'
  land(channel, message, 'error')
  storeRefusal(message, turnRefused(channel, message, latest), out)
  if (event.code === 'channel_not_open') loseLink(channel, shared, now, out)
  else retryLater(shared, message, now)
}

/** The next moment at which this stage has something to do, or Infinity. */
export function deliverAt(channel: Channel, shared: Shared, now: number): number {
  let at = Infinity
  for (const message of channel.inFlight) at = Math.min(at, message.inFlight?.ackBy ?? Infinity)
  const soonest = channel.expiries.find((message) => !message.ended && message.inFlight === null)
  if (soonest !== undefined) at = Math.min(at, soonest.expiresAt)
  if (channel.link === null || channel.congested || shared.draining) return at
  for (const head of candidates(channel, shared)) {
    if (isOnItsWay(channel, head)) continue
    if (isHeld(channel, head)) return Math.min(at, releaseAt(channel, shared))
    // A head whose time has come waits for something else: its commit, a place to flush.
    return head.notBefore > now ? Math.min(at, head.notBefore) : at
  }
  return at
}

function orphan(reason: OrphanReason, out: Effect[]): void {
  out.push({ type: 'ack_orphaned', reason })
}

function landAll(channel: Channel, cause: RedeliveryCause, now: number): void {
  for (const message of [...channel.inFlight]) {
    note(message.journal, now - message.takenAt, 'link_lost')
    land(channel, message, cause)
  }
}

/** Takes a message out of flight; it will be transmitted again for this cause. */
function land(channel: Channel, message: Waiting, cause: RedeliveryCause): void {
  channel.inFlight.delete(message)
  message.inFlight = null
  message.cause = cause
}

function retryLater(shared: Shared, message: Waiting, now: number): void {
  message.failures += 1
  message.notBefore = now + backoffMs(shared, message.failures)
}

/** Names the transmission by run, message and number, so that any transmission of this run is found without a map of them. */
function packetIdOf(shared: Shared, message: Waiting): PacketId {
  return `pkt_${shared.run}_${message.seq.toString(36)}_${message.transmissions.toString(36)}` as PacketId
}

function transmissionOf(channel: Channel, shared: Shared, packetId: PacketId): { message: Waiting; latest: boolean } | null {
  const [prefix, run, seq, number, ...more] = packetId.split('_')
  if (prefix !== 'pkt' || run !== shared.run || seq === undefined || number === undefined || more.length > 0) return null
  const message = channel.bySeq.get(parseInt(seq, 36))
  const transmission = parseInt(number, 36)
  if (message === undefined || !(transmission >= 1 && transmission <= message.transmissions)) return null
  if (packetId !== `pkt_${run}_${message.seq.toString(36)}_${transmission.toString(36)}`) return null
  return { message, latest: transmission === message.transmissions }
}
