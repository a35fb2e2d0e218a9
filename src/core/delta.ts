/**
 * Deltas (v2 §6): checked and kept so that a repeat is told from a conflict, never sent. They bind the answer that follows, and
 * show that a turn is at work. The cache is the route's, bounded by number, bytes and time (DESIGN §5).
 */
import type { ChannelId, MessageId } from '../protocol/ids.js'
import { bindingOf } from './bind.js'
import type { Effect } from './effect.js'
import type { ChannelEvent } from './event.js'
import type { Channel, DeltaCache, DeltaStream, Shared } from './state.js'
import { turnWorked } from './turn.js'

type Delta = Extract<ChannelEvent, { type: 'delta_received' }>

/** What a delta costs besides its text. */
const DELTA_BYTES = 64

export function newDeltaCache(): DeltaCache {
  return { streams: new Map(), over: new Map(), bytes: 0 }
}

/** Answers whether it was the first of its stream that could be taken: text begins to be visible. */
export function deltaReceived(channel: Channel, shared: Shared, delta: Delta, now: number, out: Effect[]): boolean {
  sweepDeltas(shared.deltas, now)
  const { messageId, sequence, text } = delta
  const key = streamKey(channel.id, messageId)
  if (shared.deltas.over.has(key) || channel.jobs.has(messageId)) {
    out.push({ type: 'deviation', reason: 'delta_ignored' })
    return false
  }
  const { turn } = bindingOf(channel, shared, messageId, now)
  const stream = shared.deltas.streams.get(key) ?? begin(shared, key, now, out)
  const known = stream.texts[sequence - 1]
  if (known === text) return false
  if (known !== undefined || sequence !== stream.texts.length + 1) {
    finish(shared, key, now)
    out.push({ type: 'refuse', to: delta.from, code: known === undefined ? 'delta_sequence_gap' : 'delta_sequence_conflict' })
    return false
  }
  append(shared, stream, text, now, out)
  if (channel.turn !== null && channel.turn.number === turn) turnWorked(channel.turn, 'delta', now)
  return sequence === 1
}

/** The final is here: what was cached for it is of no use any more (v2 §9). */
export function finishStream(channel: Channel, shared: Shared, messageId: MessageId, now: number): void {
  finish(shared, streamKey(channel.id, messageId), now)
}

/** Ends streams that have no final in time, and forgets those that are over. Both are in order of time. */
export function sweepDeltas(cache: DeltaCache, now: number): void {
  for (const [key, until] of cache.over) {
    if (until > now) break
    cache.over.delete(key)
  }
  for (const [key, { until, bytes }] of cache.streams) {
    if (until > now) return
    cache.streams.delete(key)
    cache.bytes -= bytes
  }
}

/** Streams that are cached now. */
export const openStreams = ({ streams }: DeltaCache): number => streams.size

function begin(shared: Shared, key: string, now: number, out: Effect[]): DeltaStream {
  const { streams } = shared.deltas
  const { ttlMs, maxStreams } = shared.limits.deltas
  const [oldest] = streams.keys()
  if (streams.size >= maxStreams && oldest !== undefined) overflow(shared, oldest, now, out)
  const stream: DeltaStream = { texts: [], bytes: 0, until: now + ttlMs }
  streams.set(key, stream)
  return stream
}

/** Beyond the bytes that may be cached the oldest streams end, the largest possible one itself: no delta is ever needed. */
function append(shared: Shared, stream: DeltaStream, text: string, now: number, out: Effect[]): void {
  const cache = shared.deltas
  const bytes = Buffer.byteLength(text) + DELTA_BYTES
  stream.texts.push(text)
  stream.bytes += bytes
  cache.bytes += bytes
  for (const oldest of cache.streams.keys()) {
    if (cache.bytes <= shared.limits.deltas.maxBytes) return
    overflow(shared, oldest, now, out)
  }
}

function overflow(shared: Shared, key: string, now: number, out: Effect[]): void {
  finish(shared, key, now)
  out.push({ type: 'overflow', kind: 'delta_streams' })
}

/** What follows of it is only counted; of streams that are over, as many are remembered as may be open. */
function finish({ deltas: cache, limits }: Shared, key: string, now: number): void {
  cache.bytes -= cache.streams.get(key)?.bytes ?? 0
  cache.streams.delete(key)
  if (cache.over.has(key)) return
  const [oldest] = cache.over.keys()
  if (cache.over.size >= limits.deltas.maxStreams && oldest !== undefined) cache.over.delete(oldest)
  cache.over.set(key, now + limits.deltas.ttlMs)
}

const streamKey = (channelId: ChannelId, messageId: MessageId): string => `${channelId} ${messageId}`
