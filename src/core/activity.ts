/**
 * Activity (v2 §8): the latest snapshot counts. It shows whether a turn is at work, and "is typing" where the connector has a
 * tool for that; a failure of that tool touches no message.
 */
import { bindNow } from './bind.js'
import type { Effect } from './effect.js'
import type { TypingTarget } from './record.js'
import type { Channel, Shared } from './state.js'
import { turnIdle, turnWorked } from './turn.js'

/** A repeated snapshot renews "is typing" no more often than this. */
const RENEW_AFTER_MS = 5_000

export function activityReceived(channel: Channel, shared: Shared, status: 'thinking' | 'tool' | 'idle', now: number, out: Effect[]): void {
  if (status === 'idle') {
    if (channel.turn !== null) turnIdle(channel.turn, now)
    return clearTyping(channel, out)
  }
  if (channel.turn !== null) turnWorked(channel.turn, 'snapshot', now)
  showTyping(channel, shared, now, out)
}

/** To be called on idle, on a final, on the first delta, and when nobody knows any more. */
export function clearTyping(channel: Channel, out: Effect[]): void {
  const shown = channel.typing
  channel.typing = null
  if (shown !== null) out.push({ type: 'typing', target: shown.target, on: false })
}

/** The local timeout: without a new snapshot nobody is typing any more. */
export function typingTimeout(channel: Channel, now: number, out: Effect[]): void {
  if (channel.typing !== null && channel.typing.until <= now) clearTyping(channel, out)
}

export const typingAt = (channel: Channel): number => channel.typing?.until ?? Infinity

function showTyping(channel: Channel, shared: Shared, now: number, out: Effect[]): void {
  const target = bindNow(channel, shared, now).target?.typing ?? null
  const shown = channel.typing
  if (shown !== null && (target === null || !sameTyping(shown.target, target))) clearTyping(channel, out)
  if (target === null) return
  const until = now + shared.limits.activityTimeoutMs
  if (channel.typing !== null && channel.typing.shownAt + RENEW_AFTER_MS > now) {
    channel.typing = { ...channel.typing, until }
    return
  }
  channel.typing = { target, shownAt: now, until }
  out.push({ type: 'typing', target, on: true })
}

function sameTyping(one: TypingTarget, other: TypingTarget): boolean {
  return one.tool === other.tool && JSON.stringify(one.arguments) === JSON.stringify(other.arguments)
}
