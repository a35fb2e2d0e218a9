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
  return { streams: new Map(), bytes: 0 }
}

/** Answers whether it was the first of its stream that could be taken: text begins to be visible. */
export function deltaReceived(channel: Channel, shared: Shared, delta: Delta, now: number, out: Effect[]): boolean {
  sweepDeltas(shared.deltas, now)
  const { messageId, sequence, text } = delta
  const stream = shared.deltas.streams.get(streamKey(channel.id, messageId)) ?? begin(channel, shared, messageId, now, out)
  if (stream.texts === null) {
    out.push({ type: 'deviation', reason: 'delta_ignored' })
    return false
  }
  const known = stream.texts[sequence - 1]
  if (known === text) return false
  if (known !== undefined || sequence !== stream.texts.length + 1) {
    finish(shared.deltas, stream)
    out.push({ type: 'refuse', to: delta.from, code: known === undefined ? 'delta_sequence_gap' : 'delta_sequence_conflict' })
    return false
  }
  append(shared, stream, text, out)
  const { turn } = bindingOf(channel, shared, messageId, now)
  if (channel.turn !== null && channel.turn.number === turn) turnWorked(channel.turn, 'delta', now)
  return sequence === 1
}

/** The final is here: what was cached for it is of no use any more (v2 §9). */
export function finishStream(channel: Channel, shared: Shared, messageId: MessageId): void {
  const stream = shared.deltas.streams.get(streamKey(channel.id, messageId))
  if (stream !== undefined) finish(shared.deltas, stream)
}

/** Forgets streams whose time is over. They are in order of their beginning, so the first that lives ends the search. */
export function sweepDeltas(cache: DeltaCache, now: number): void {
  for (const [key, stream] of cache.streams) {
    if (stream.until > now) return
    finish(cache, stream)
    cache.streams.delete(key)
  }
}

/** Streams that are cached now. */
export function openStreams(cache: DeltaCache): number {
  let open = 0
  for (const { texts } of cache.streams.values()) if (texts !== null) open += 1
  return open
}

/** A new stream. One whose final is being worked on is over already. */
function begin(channel: Channel, shared: Shared, messageId: MessageId, now: number, out: Effect[]): DeltaStream {
  const { streams } = shared.deltas
  const { ttlMs, maxStreams } = shared.limits.deltas
  const stream: DeltaStream = { texts: channel.jobs.has(messageId) ? null : [], bytes: 0, until: now + ttlMs }
  if (stream.texts !== null) bindingOf(channel, shared, messageId, now)
  const [oldest] = streams
  if (streams.size >= maxStreams && oldest !== undefined) {
    finish(shared.deltas, oldest[1])
    streams.delete(oldest[0])
    out.push({ type: 'overflow', kind: 'delta_streams' })
  }
  streams.set(streamKey(channel.id, messageId), stream)
  return stream
}

/** Beyond the bytes that may be cached the oldest streams end, the largest possible one itself: no delta is ever needed. */
function append(shared: Shared, stream: DeltaStream, text: string, out: Effect[]): void {
  const cache = shared.deltas
  const bytes = Buffer.byteLength(text) + DELTA_BYTES
  stream.texts?.push(text)
  stream.bytes += bytes
  cache.bytes += bytes
  for (const oldest of cache.streams.values()) {
    if (cache.bytes <= shared.limits.deltas.maxBytes) return
    if (oldest.texts === null) continue
    finish(cache, oldest)
    out.push({ type: 'overflow', kind: 'delta_streams' })
  }
}

/** What follows of it is only counted. */
function finish(cache: DeltaCache, stream: DeltaStream): void {
  cache.bytes -= stream.bytes
  stream.bytes = 0
  stream.texts = null
}

const streamKey = (channelId: ChannelId, messageId: MessageId): string => `${channelId} ${messageId}`
