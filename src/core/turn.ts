/**
 * Turns: in a channel with several conversations one has the word at a time, so that an answer never reaches the wrong person
 * where the packets can tell (DESIGN §4 Turns). When a turn ends stands in turn-end.ts, who is next in turn-order.ts, what an
 * answer is bound to in bind.ts.
 */
import type { ConversationKey, MessageId } from '../protocol/ids.js'
import type { Effect } from './effect.js'
import { note } from './journal.js'
import type { InboundOutcome } from './outcome.js'
import { MAX_CONVERSATIONS, type Change, type ReplyTarget } from './record.js'
import type { Channel, Shared, Turn, TurnEnd, TurnMessage, Waiting } from './state.js'
import { hasJoinable, takesTurns } from './turn-order.js'
import { newState, turnChange } from './turn-record.js'
import { turnEnd, type TurnVerdict } from './turn-end.js'

/** Whether a message must have its place in a turn stored before its frame may leave (rule 1). */
export function needsPlace(channel: Channel, shared: Shared, message: Waiting): boolean {
  return message.conversation !== null && takesTurns(channel, shared) && placeOf(channel, message) === undefined
}

/** Opens a turn for a message, or joins it to the one that its conversation has; `turn_stored` follows. */
export function enterTurn(channel: Channel, message: Waiting, now: number, out: Effect[]): void {
  if (message.conversation === null) return
  channel.turn ??= newTurn(channel, message.conversation, now)
  // Its last ack may be a rejection, in an earlier turn of the conversation.
  const state = message.lastCode === null ? 'entered' : 'refused'
  channel.turn.messages.push({ seq: message.seq, messageId: message.messageId, target: message.target, state, firstTick: 0, firstSentAt: 0, sentAt: 0, unanswered: false })
  channel.entering.add(message)
  note(message.journal, now - message.takenAt, 'entered', `turn ${channel.turn.number}`)
  out.push({ type: 'commit', changes: [turnChange(channel)], then: { type: 'turn_stored', seq: message.seq } })
}

export function turnStored(channel: Channel, seq: number): void {
  for (const message of channel.entering) if (message.seq === seq) channel.entering.delete(message)
}

/** Its frame leaves. A refused one stays refused until it is accepted: a final of somebody else is not its answer (rule 3). */
export function turnTransmitted(channel: Channel, message: Waiting, now: number): void {
  const place = placeOf(channel, message)
  if (place === undefined || channel.turn === null) return
  place.sentAt = now
  place.unanswered = true
  if (place.state === 'entered') place.state = 'sent'
  if (place.firstTick > 0) return
  place.firstTick = tick(channel.turn)
  place.firstSentAt = now
}

/** Its frame did not leave after all. */
export function turnNotTransmitted(channel: Channel, message: Waiting): void {
  const place = placeOf(channel, message)
  if (place === undefined) return
  place.unanswered = false
  if (place.state === 'sent' && message.attempts === 0) place.state = 'entered'
}

/** A re-push has brought fresh references. */
export function turnTargetRefreshed(channel: Channel, message: Waiting): void {
  const place = placeOf(channel, message)
  if (place !== undefined) place.target = message.target
}

/**
 * xAgent has refused it for now. Answers what is to be stored with that. A late refusal of an earlier transmission does not
 * say that the latest one was not taken.
 */
export function turnRefused(channel: Channel, message: Waiting, latest: boolean): Change[] {
  const place = placeOf(channel, message)
  if (place === undefined) return []
  place.state = 'refused'
  if (!latest) return [turnChange(channel)]
  place.unanswered = false
  // Only what is transmitted from now on can have been taken.
  place.firstTick = 0
  return [turnChange(channel)]
}

/** A waiting message has ended. Answers what is to be stored in the batch of its end. */
export function turnMessageEnded(channel: Channel, message: Waiting, outcome: InboundOutcome, now: number): Change[] {
  channel.entering.delete(message)
  const forgotten = outcome === 'expired' && forgetTarget(channel, message)
  const place = placeOf(channel, message)
  if (place === undefined || channel.turn === null) return forgotten ? [turnChange(channel)] : []
  const { turn } = channel
  if (outcome === 'accepted' || outcome === 'duplicate') {
    accept(turn, place, outcome, now)
  } else {
    turn.messages = turn.messages.filter((other) => other !== place)
    if (place.unanswered && message.certainty === 'unknown') turn.unknown = { count: (turn.unknown?.count ?? 0) + 1, tick: place.firstTick, at: place.sentAt }
  }
  return [turnChange(channel)]
}

/** A `duplicate` dates from its first transmission: it was accepted then, and its ack was lost (rule 5). */
function accept(turn: Turn, place: TurnMessage, outcome: 'accepted' | 'duplicate', now: number): void {
  const dated = outcome === 'duplicate' && place.firstSentAt > 0
  turn.acceptedTick = Math.max(turn.acceptedTick, dated ? place.firstTick : tick(turn))
  turn.acceptedAt = Math.max(turn.acceptedAt, dated ? place.firstSentAt : now)
  turn.accepted += 1
  place.state = 'accepted'
  place.unanswered = false
  const at = turn.messages.indexOf(place)
  turn.messages = turn.messages.filter((other, index) => index >= at || other.state !== 'accepted')
}

/** The target of an expired message is removed (rule 9). */
function forgetTarget(channel: Channel, { target }: Waiting): boolean {
  if (target === null || target.conversation === null) return false
  // Two messages of one conversation may have come in the same millisecond.
  const address = JSON.stringify(target.arguments)
  const same = (other: ReplyTarget | null): boolean =>
    other !== null && other.takenAt === target.takenAt && other.conversation === target.conversation && JSON.stringify(other.arguments) === address
  const known = same(channel.target)
  if (known) channel.target = null
  if (channel.lastTurn === null || !same(channel.lastTurn.target)) return known
  channel.lastTurn = { ...channel.lastTurn, target: null }
  return true
}

/** A delta or a final of the turn, or a thinking or tool snapshot (rule 4). A final leaves a standing idle as it is. */
export function turnWorked(turn: Turn, what: 'delta' | 'final' | 'snapshot', now: number): void {
  turn.workTick = tick(turn)
  turn.workAt = now
  turn.busySince = what === 'snapshot' ? now : null
  if (what === 'snapshot') turn.activity = true
  if (what !== 'final') turn.idle = null
  if (what !== 'final') return
  turn.finals += 1
  turn.finalAt = now
}

/** A final of the turn was refused for now: the turn waits for it (rule 5). */
export function turnAwaitsFinal(channel: Channel, shared: Shared, messageId: MessageId, number: number | null, now: number): void {
  if (channel.turn !== null && channel.turn.number === number) channel.turn.refused.set(messageId, now + shared.limits.turns.timeoutMs)
}

export function turnIdle(turn: Turn, now: number): void {
  turn.activity = true
  turn.busySince = null
  turn.idle = { tick: tick(turn), workTick: turn.workTick, at: now }
}

/** The xAgent link is lost: what it showed last says nothing any more (rule 5). */
export function activityUnknown(channel: Channel): void {
  if (channel.turn === null) return
  channel.turn.busySince = null
  channel.turn.idle = null
}

/** Ends the turn if it is over; answers whether it was. */
export function settleTurn(channel: Channel, shared: Shared, now: number, out: Effect[]): boolean {
  const { turn } = channel
  if (turn === null) return false
  const verdict = verdictOn(channel, shared, turn, now)
  if ('end' in verdict) endTurn(channel, turn, verdict.end, now, out)
  return 'end' in verdict
}

/** The next moment at which the turn may be over, or Infinity. */
export function turnAt(channel: Channel, shared: Shared, now: number): number {
  if (channel.turn === null) return Infinity
  const verdict = verdictOn(channel, shared, channel.turn, now)
  return 'at' in verdict ? verdict.at : now
}

function verdictOn(channel: Channel, shared: Shared, turn: Turn, now: number): TurnVerdict {
  const { ttlMs, turns } = shared.limits
  const around = {
    open: channel.link !== null, openedAt: channel.openedAt, ttlMs,
    onItsWay: channel.entering.size > 0 || [...channel.inFlight].some((message) => placeOf(channel, message) !== undefined),
    pending: turn.messages.some(({ state }) => state !== 'accepted') || hasJoinable(channel, shared),
    running: channel.line.some((job) => (job.record === null ? job.binding.turn : job.record.turn) === turn.number),
  }
  return turnEnd(turn, around, turns, now)
}

function endTurn(channel: Channel, turn: Turn, how: TurnEnd, now: number, out: Effect[]): void {
  channel.turn = null
  channel.lastTurn = { conversation: turn.conversation, how, target: answered(turn)?.target ?? null, endedAt: now }
  // One that was forgotten with an earlier account still has its place among the others while its messages wait (rule 8).
  const known = channel.conversations.delete(turn.conversation)
  if (known || channel.byConversation.has(turn.conversation)) channel.conversations.set(turn.conversation, now)
  out.push({ type: 'commit', changes: [turnChange(channel)], then: null })
  out.push({ type: 'turn_ended', end: how, lastedMs: now - turn.openedAt, accepted: turn.accepted, finals: turn.finals })
}

/** Rule 3: the latest transmitted message whose last ack is not a rejection. */
export function answered(turn: Turn): TurnMessage | undefined {
  return turn.messages.findLast(({ state }) => state === 'sent' || state === 'accepted')
}

/** Remembers that a conversation exists; the one that was silent longest is forgotten when there are too many. Answers whether it is new. */
export function seeConversation(channel: Channel, conversation: ConversationKey | null): boolean {
  if (conversation === null) return false
  const endedAt = channel.conversations.get(conversation)
  if (endedAt !== undefined) {
    channel.conversations.delete(conversation)
    channel.conversations.set(conversation, endedAt)
    return false
  }
  const [oldest] = channel.conversations.keys()
  if (channel.conversations.size >= MAX_CONVERSATIONS && oldest !== undefined) channel.conversations.delete(oldest)
  channel.conversations.set(conversation, 0)
  return true
}

function newTurn(channel: Channel, conversation: ConversationKey, now: number): Turn {
  channel.turnNumber += 1
  return newState(channel.turnNumber, conversation, now)
}

function placeOf(channel: Channel, message: Waiting): TurnMessage | undefined {
  return channel.turn?.messages.find(({ seq }) => seq === message.seq)
}

function tick(turn: Turn): number {
  turn.tick += 1
  return turn.tick
}
