/** Whose messages may leave next (DESIGN §4 Turns rules 1, 2 and 8). Without turns every message may, in order. */
import type { ConversationKey } from '../protocol/ids.js'
import type { Channel, Shared, Waiting } from './state.js'

/** Whether this channel's messages take turns: they carry conversations, and turns are not switched off. */
export function takesTurns(channel: Channel, shared: Shared): boolean {
  if (shared.limits.turns.mode === 'off') return false
  return channel.turn !== null || channel.byConversation.size > (channel.byConversation.has(null) ? 1 : 0)
}

/** Waiting messages in the order in which they may leave now; ended ones are left out, those in flight are not. */
export function* candidates(channel: Channel, shared: Shared): Generator<Waiting> {
  if (!takesTurns(channel, shared)) {
    for (const message of channel.waiting) if (!message.ended) yield message
    return
  }
  const conversation = channel.turn === null ? nextConversation(channel) : channel.turn.conversation
  if (conversation === undefined) return
  const others = othersWaitSince(channel, conversation)
  for (const message of channel.byConversation.get(conversation)?.list ?? []) {
    if (!message.ended && mayJoin(channel, shared, message, others)) yield message
  }
}

/** Whether a message of the turn's conversation may still be transmitted in it. */
export function hasJoinable(channel: Channel, shared: Shared): boolean {
  for (const _ of candidates(channel, shared)) return true
  return false
}

/** Conversations that wait for somebody else's turn to end. */
export function conversationsHeld(channel: Channel): number {
  if (channel.turn === null) return 0
  return channel.byConversation.size - (channel.byConversation.has(channel.turn.conversation) ? 1 : 0)
}

/**
 * Rule 2: what waited when the turn opened joins, later messages too, until another conversation has waited `turns.timeout`;
 * from then on they queue.
 */
function mayJoin(channel: Channel, shared: Shared, message: Waiting, othersSince: number): boolean {
  if (channel.turn === null || message.takenAt <= channel.turn.openedAt) return true
  return message.takenAt < othersSince + shared.limits.turns.timeoutMs
}

/**
 * Rule 8: the conversation that has waited longest. One that had a turn waits since the end of that turn, so that everybody
 * who waited meanwhile comes first.
 */
function nextConversation(channel: Channel): ConversationKey | null | undefined {
  let next: { readonly conversation: ConversationKey | null; readonly since: number; readonly endedAt: number } | undefined
  for (const [conversation, { list }] of channel.byConversation) {
    const endedAt = conversation === null ? 0 : (channel.conversations.get(conversation) ?? 0)
    const since = Math.max(oldestOf(list), endedAt)
    if (next === undefined || since < next.since || (since === next.since && endedAt < next.endedAt)) next = { conversation, since, endedAt }
  }
  return next?.conversation
}

function othersWaitSince(channel: Channel, conversation: ConversationKey | null): number {
  let since = Infinity
  for (const [other, queue] of channel.byConversation) if (other !== conversation) since = Math.min(since, oldestOf(queue.list))
  return since
}

/** The head is the oldest, but for messages that the reorder window has sorted. */
function oldestOf(list: readonly Waiting[]): number {
  return list.find((message) => !message.ended)?.takenAt ?? Infinity
}
