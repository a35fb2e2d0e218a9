/** After an outage a bounded number of channels work off their backlog at once (DESIGN §4 "Return", `flush_channels`). */
import type { Effect } from './effect.js'
import { waitingCount, type Channel, type FlushGate } from './state.js'

export function newFlushGate(limit: number): FlushGate {
  return { limit, holders: new Set(), waiting: new Set() }
}

/** Whether the channel may transmit now. One with a backlog needs a place; without one it is woken when a place is free. */
export function mayFlush(channel: Channel, gate: FlushGate): boolean {
  if (!hasBacklog(channel) || gate.holders.has(channel.id)) return true
  if (gate.holders.size < gate.limit) {
    gate.waiting.delete(channel.id)
    gate.holders.add(channel.id)
    return true
  }
  gate.waiting.add(channel.id)
  return false
}

/** Gives the place back, and wakes the channel that has waited longest for one. */
export function leaveFlush(channel: Channel, gate: FlushGate, out: Effect[]): void {
  gate.waiting.delete(channel.id)
  if (!gate.holders.delete(channel.id)) return
  const [next] = gate.waiting
  if (next === undefined) return
  gate.waiting.delete(next)
  out.push({ type: 'wake', channelId: next })
}

/** A channel that has worked off its backlog, or is held up, does not keep others waiting. */
export function settleFlush(channel: Channel, gate: FlushGate, heldUp: boolean, out: Effect[]): void {
  if (gate.holders.has(channel.id) && (heldUp || !hasBacklog(channel))) leaveFlush(channel, gate, out)
}

function hasBacklog(channel: Channel): boolean {
  if (waitingCount(channel) === 0) return false
  const head = channel.waiting.find((message) => !message.ended)
  return head !== undefined && head.seq <= channel.backlogUntil
}
