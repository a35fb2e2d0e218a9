/**
 * Stage "retain": a translated push becomes a waiting message, once (v1 §7-§8, DESIGN §4 Dedupe and Capacity).
 *
 * A push is first looked up among the completed ids; answers may come later, pushes are decided in the order in which they
 * arrived. Pending messages are compared when the answer is there, not when the push arrives.
 */
import { endArrival, endWaiting, indexWaiting, inboundRecord } from './inbound-end.js'
import type { ChannelEvent } from './event.js'
import { inEpoch } from './bind.js'
import type { Effect } from './effect.js'
import { presetLabel } from './dead-letter.js'
import { note } from './journal.js'
import { noteWriter } from './last-chat.js'
import { inboundBodyKey, inboundKey, type Change, type ReplyTarget } from './record.js'
import { hold, orderOf } from './reorder.js'
import { waitingCount, type Arrival, type Channel, type Shared, type Waiting } from './state.js'
import { seeConversation, turnTargetRefreshed } from './turn.js'
import { turnChange } from './turn-record.js'
import type { TranslatedPush } from '../translate/message-push.js'

type MessagePush = Extract<TranslatedPush, { kind: 'message' }>

/** A push has arrived: takeover is now (DESIGN §4 Takeover). */
export function arrive(channel: Channel, shared: Shared, event: Extract<ChannelEvent, { type: 'pushed' }>, now: number, out: Effect[]): void {
  out.push({ type: 'received', direction: 'inbound' })
  const arrival: Arrival = { number: channel.nextArrival, push: event.push, bytes: event.bytes, at: event.takenAt, epoch: channel.epoch, completed: undefined }
  channel.nextArrival += 1
  channel.arrivals.push(arrival)
  if (noteWriter(channel, shared, event.push)) out.push({ type: 'commit', changes: [turnChange(channel)], then: null })
  if (event.push.kind === 'message') {
    out.push({ type: 'find_completed', arrival: arrival.number, messageId: event.push.messageId })
  } else {
    arrival.completed = null
  }
  decideArrivals(channel, shared, now, out)
}

/** The store has said whether the id is known. */
export function completedFound(channel: Channel, shared: Shared, event: Extract<ChannelEvent, { type: 'completed_found' }>, now: number, out: Effect[]): void {
  const arrival = channel.arrivals.find((waiting) => waiting.number === event.arrival)
  if (arrival !== undefined) arrival.completed = event.completed
  decideArrivals(channel, shared, now, out)
}

/** The takeover is committed: the message may be transmitted even where that waits for the commit. */
export function takenDurable(channel: Channel, event: Extract<ChannelEvent, { type: 'taken_durable' }>): void {
  const message = channel.bySeq.get(event.seq)
  if (message !== undefined) message.durable = true
}

function decideArrivals(channel: Channel, shared: Shared, now: number, out: Effect[]): void {
  for (;;) {
    const arrival = channel.arrivals[0]
    if (arrival === undefined || arrival.completed === undefined) return
    channel.arrivals.shift()
    decide(channel, shared, arrival, now, out)
  }
}

function decide(channel: Channel, shared: Shared, arrival: Arrival, now: number, out: Effect[]): void {
  const { push } = arrival
  switch (push.kind) {
    case 'not_forwarded':
      if (push.reason === 'command' || push.reason === 'not_accepted') rememberConversation(channel, shared, push, null, out)
      return endArrival(channel, shared, arrival, { outcome: 'not_forwarded', reason: null, code: push.reason }, now, out)
    case 'empty':
      return endArrival(channel, shared, arrival, { outcome: 'empty', reason: 'empty_message', code: null }, now, out)
    case 'files_only':
      return endArrival(channel, shared, arrival, { outcome: 'files_not_supported', reason: 'files_not_supported', code: null }, now, out)
    case 'message':
      return decideMessage(channel, shared, arrival, push, now, out)
  }
}

function decideMessage(channel: Channel, shared: Shared, arrival: Arrival, push: MessagePush, now: number, out: Effect[]): void {
  const target = inEpoch(push.target, arrival.epoch)
  const pending = channel.byId.get(push.messageId)
  const known = pending ?? (arrival.completed !== null && arrival.completed !== undefined && arrival.completed.until > now ? arrival.completed : null)
  if (known !== null && known.contentHash !== push.contentHash) {
    return endArrival(channel, shared, arrival, { outcome: 'conflict', reason: 'conflict', code: null }, now, out)
  }
  if (known !== null) {
    if (pending !== undefined) refresh(channel, pending, push, target, out)
    rememberConversation(channel, shared, push, target, out)
    return endArrival(channel, shared, arrival, { outcome: 'absorbed', reason: null, code: null }, now, out)
  }
  if (arrival.at + shared.limits.ttlMs <= now) {
    return endArrival(channel, shared, arrival, { outcome: 'expired', reason: 'expired', code: null }, now, out)
  }
  if (!makeRoom(channel, shared, arrival.bytes, now, out)) {
    return endArrival(channel, shared, arrival, { outcome: 'evicted', reason: 'capacity_exceeded', code: null }, now, out)
  }
  take(channel, shared, arrival, push, target, out)
}

/** A re-push carries fresh reply targets; the waiting message takes them over (DESIGN §4 Dedupe). */
function refresh(channel: Channel, pending: Waiting, push: MessagePush, target: ReplyTarget | null, out: Effect[]): void {
  if (push.body.files.length > 0) out.push({ type: 'refresh_files', seq: pending.seq, files: push.body.files })
  if (target === null || !target.perMessage) return
  pending.target = target
  turnTargetRefreshed(channel, pending)
  out.push({ type: 'commit', changes: [{ op: 'put', kind: 'inbound', key: inboundKey(pending.seq), value: inboundRecord(pending) }], then: null })
}

/**
 * Relief in the order of DESIGN §4 Capacity: what has expired is gone already; then the oldest message not in flight ends
 * as `capacity_exceeded`, or the newest is refused. Answers whether the new message fits now.
 */
function makeRoom(channel: Channel, shared: Shared, bytes: number, now: number, out: Effect[]): boolean {
  const { maxMessages, maxBytes, overflow } = shared.limits
  if (bytes > maxBytes || bytes > shared.budget.maxBytes) return false
  const full = (): boolean =>
    waitingCount(channel) >= maxMessages || channel.waitingBytes + bytes > maxBytes || shared.budget.usedBytes + bytes > shared.budget.maxBytes
  while (full()) {
    if (overflow === 'refuse_newest') return false
    const oldest = oldestOfTheFullest(channel)
    if (oldest === undefined) return false
    endWaiting(channel, shared, oldest, { outcome: 'evicted', reason: 'capacity_exceeded', code: null }, now, out)
  }
  return true
}

/** With turns the conversation with most waiting messages gives one up, so that one person cannot push the others out. */
function oldestOfTheFullest(channel: Channel): Waiting | undefined {
  const free = (message: Waiting): boolean => !message.ended && message.inFlight === null
  const fullest = [...channel.byConversation.values()].sort((a, b) => b.count - a.count)
  for (const { list } of fullest) {
    const oldest = list.find(free)
    if (oldest !== undefined) return oldest
  }
  return undefined
}

function take(channel: Channel, shared: Shared, arrival: Arrival, push: MessagePush, target: ReplyTarget | null, out: Effect[]): void {
  const seq = shared.nextSeq
  shared.nextSeq += 1
  const message: Waiting = {
    channelId: channel.id, seq, order: orderOf(shared, seq, push.createdAt), messageId: push.messageId, originalId: push.originalId,
    conversation: push.conversation, target,
    contentHash: push.contentHash, bytes: arrival.bytes, createdAt: push.createdAt, takenAt: arrival.at, expiresAt: arrival.at + shared.limits.ttlMs,
    files: push.body.files.length, preparing: push.body.files.filter((file) => file.state === 'preparing').length, hasWords: push.body.text !== '',
    preset: presetLabel(shared), journal: [], transmissions: 0, attempts: 0, rejections: 0, failures: 0, certainty: 'certain', lastCode: null,
    durable: false, inFlight: null, notBefore: 0, cause: null, ended: false,
  }
  note(message.journal, 0, 'taken')
  indexWaiting(channel, shared, message)
  hold(channel, shared, message)
  out.push({
    type: 'commit',
    changes: [
      { op: 'put', kind: 'inbound', key: inboundKey(seq), value: inboundRecord(message) },
      { op: 'put', kind: 'body', key: inboundBodyKey(seq), value: push.body },
      ...conversationChange(channel, shared, push, target),
    ],
    then: { type: 'taken_durable', seq },
  })
  if (message.preparing > 0) out.push({ type: 'fetch_files', seq })
}

/** Its files are there or lost. What is left may go; where nothing is left to say it ends (v2 §5: text or files). */
export function filesSettled(channel: Channel, shared: Shared, event: Extract<ChannelEvent, { type: 'files_settled' }>, now: number, out: Effect[]): void {
  const message = channel.bySeq.get(event.seq)
  if (message === undefined || message.preparing === 0) return
  message.preparing = 0
  for (const reason of event.lost) note(message.journal, now - message.takenAt, 'file_lost', reason)
  if (!message.hasWords && event.lost.length >= message.files) {
    return endWaiting(channel, shared, message, { outcome: 'empty', reason: 'empty_message', code: event.lost[0] ?? null }, now, out)
  }
  out.push({ type: 'commit', changes: [{ op: 'put', kind: 'inbound', key: inboundKey(message.seq), value: inboundRecord(message) }], then: null })
}

function rememberConversation(channel: Channel, shared: Shared, push: TranslatedPush, target: ReplyTarget | null, out: Effect[]): void {
  const changes = conversationChange(channel, shared, push, target)
  if (changes.length > 0) out.push({ type: 'commit', changes, then: null })
}

/** Remembers who wrote and where an answer goes; a change is stored only when it says something new. */
function conversationChange(channel: Channel, shared: Shared, push: TranslatedPush, target: ReplyTarget | null): Change[] {
  const isNew = seeConversation(channel, push.conversation)
  const moved = target !== null && !sameTarget(channel.target, target)
  // Where answers are bound to messages, those carry their targets: only the way to somebody who is alone must be stored here.
  const needed = moved && (channel.conversations.size <= 1 || shared.limits.turns.mode === 'off')
  if (target !== null) channel.target = target
  return isNew || needed ? [turnChange(channel)] : []
}

/** Whether a stored target still serves: same address, and not more than half of its life has passed. */
function sameTarget(stored: ReplyTarget | null, next: ReplyTarget): boolean {
  if (stored === null || stored.perMessage || next.perMessage) return false
  const half = (stored.expiresAt - stored.takenAt) / 2
  return stored.tool === next.tool && stored.epoch === next.epoch && stored.conversation === next.conversation && next.takenAt < stored.takenAt + half &&
    stored.proof.recipient?.value === next.proof.recipient?.value
}

/**
 * The channel belongs to another account, or to nobody: earlier writers are forgotten, and what is bound to them reaches nobody
 * any more. A turn stays until it is over, because late answers are still those of its messages.
 */
export function rebound(channel: Channel, out: Effect[]): void {
  channel.epoch += 1
  channel.conversations.clear()
  channel.lastPrivate = null
  channel.typing = null
  // What was refused for now has nobody to go to any more: no turn waits for it.
  channel.turn?.refused.clear()
  out.push({ type: 'commit', changes: [turnChange(channel)], then: null })
}
