/**
 * The reorder window (DESIGN §4 Order): where a connector does not keep order, a message is held that long, so that earlier
 * ones can still come in; then it leaves with everything that belongs before it. Nobody waits longer than the window.
 */
import type { Channel, Shared, Waiting } from './state.js'

/** The place of a new message: by the target's time where order has to be mended, else by arrival. */
export function orderOf(shared: Shared, seq: number, createdAt: number): number {
  return shared.dialect.preset.reorderWindowMs > 0 ? createdAt : seq
}

export function hold(channel: Channel, shared: Shared, message: Waiting): void {
  if (shared.dialect.preset.reorderWindowMs > 0) channel.held.push(message)
}

/** Releases whatever has been held for the window, and everything sorted before it. */
export function releaseHeld(channel: Channel, shared: Shared, now: number): void {
  for (let first = channel.held[0]; first !== undefined; first = channel.held[0]) {
    if (!first.ended && heldUntil(shared, first) > now) return
    channel.held.shift()
    if (first.ended) continue
    channel.releasedOrder = Math.max(channel.releasedOrder, first.order)
  }
}

export function isHeld(channel: Channel, message: Waiting): boolean {
  return message.order > channel.releasedOrder && channel.held.length > 0
}

/** The next moment at which something is released, or Infinity. */
export function releaseAt(channel: Channel, shared: Shared): number {
  const [first] = channel.held
  return first === undefined ? Infinity : heldUntil(shared, first)
}

function heldUntil(shared: Shared, message: Waiting): number {
  return message.takenAt + shared.dialect.preset.reorderWindowMs
}
