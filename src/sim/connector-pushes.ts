/** The way of a user message to the socket that has its channel, and what the platform does when there is none. */
import type { JsonObject } from '../protocol/packet.js'
import type { Dialect } from './connector-dialect.js'
import { pushIn } from './connector-dialect.js'
import type { ConnectorEvents, LostPush } from './connector-events.js'
import type { ConnectorKind, UserMessage } from './connector-kind.js'
import type { ConnectorMemory, SimChannel } from './connector-memory.js'
import type { Occurrences } from './occurrences.js'
import { wireId, wirePacket } from './wire-packet.js'

const MEDIA_LIFETIME_MS = 24 * 3_600_000
/** WeChat keeps a message for a closed channel that long, and that many. */
const QUEUE_AGE_MS = 3_600_000
const QUEUE_LENGTH = 1000
/** A flush of 1000 was seen to take 32 s. */
const FLUSH_PACE_MS = 32

export type PushOutcome = 'written' | 'queued' | 'lost'

export interface Pushed {
  readonly payload: JsonObject
  readonly outcome: PushOutcome
}

export class ConnectorPushes {
  /** Whether the process runs. */
  running = false
  readonly #flushes = new Map<string, NodeJS.Timeout>()

  constructor(
    private readonly kind: ConnectorKind,
    private readonly dialect: Dialect,
    private readonly memory: ConnectorMemory,
    private readonly events: Occurrences<ConnectorEvents>,
    private readonly now: () => number,
  ) {}

  /** A person writes. Throws for a channel where nobody is signed in: the platform has nobody to give the message to. */
  push(channelId: string, message: UserMessage): Pushed {
    const channel = this.memory.channels.get(channelId)
    if (!channel?.account) throw new Error(`nobody is signed in on channel "${channelId}"`)
    const media = (message.files ?? []).map((file) => {
      const ref = wireId(this.kind.mediaRefPrefix, 12)
      this.memory.mediaRefs.add(ref)
      if (file.bytes !== undefined) this.memory.media.set(ref, { bytes: file.bytes, contentType: file.contentType ?? 'application/octet-stream', filename: file.filename ?? '', recipient: null })
      return this.kind.mediaItem(file, ref, this.now() + MEDIA_LIFETIME_MS)
    })
    const payload: Record<string, unknown> = { ...this.kind.push(channel.account, message, media, this.now()), ...message.fields }
    return this.pushRaw(channelId, pushIn(this.dialect, payload))
  }

  /** The same way for a payload that was made elsewhere. */
  pushRaw(channelId: string, payload: JsonObject): Pushed {
    const channel = this.memory.channels.get(channelId)
    // The backlog that was being flushed does not survive a message that comes in between.
    if (channel !== undefined) this.#endFlush(channel)
    if (channel?.opener && this.#write(channel, payload)) return { payload, outcome: 'written' }
    if (this.kind.whileClosed === 'queued' && channel !== undefined) return this.#queue(channel, payload)
    return this.#lose(channelId, payload, this.running ? 'closed' : 'down')
  }

  /** The channel was opened: what waited is written, one by one. */
  flush(channel: SimChannel): void {
    const [head, ...rest] = channel.queued
    this.#flushes.delete(channel.id)
    if (head === undefined) return
    channel.queued = rest
    if (this.now() - head.queuedAt > QUEUE_AGE_MS) this.#lose(channel.id, head.payload, 'too_old')
    else if (!this.#write(channel, head.payload)) {
      channel.queued = [head, ...rest]
      return this.#dropBacklog(channel)
    }
    if (rest.length > 0) this.#flushes.set(channel.id, setTimeout(() => this.flush(channel), FLUSH_PACE_MS))
  }

  /** The process ends: no flush goes on. */
  stop(): void {
    this.running = false
    for (const timer of this.#flushes.values()) clearTimeout(timer)
    this.#flushes.clear()
  }

  #write(channel: SimChannel, payload: JsonObject): boolean {
    const packet = wirePacket({ connector_channel_id: channel.id, type: 'message.push', payload }, this.now())
    if (channel.opener?.send(packet) !== true) return false
    this.events.record('push', { channelId: channel.id, payload, outcome: 'written' })
    return true
  }

  #queue(channel: SimChannel, payload: JsonObject): Pushed {
    channel.queued.push({ payload, queuedAt: this.now() })
    const oldest = channel.queued.length > QUEUE_LENGTH ? channel.queued.shift() : undefined
    if (oldest !== undefined) this.#lose(channel.id, oldest.payload, 'queue_full')
    this.events.record('push', { channelId: channel.id, payload, outcome: 'queued' })
    return { payload, outcome: 'queued' }
  }

  #endFlush(channel: SimChannel): void {
    const timer = this.#flushes.get(channel.id)
    if (timer === undefined) return
    clearTimeout(timer)
    this.#flushes.delete(channel.id)
    this.#dropBacklog(channel)
  }

  #dropBacklog(channel: SimChannel): void {
    for (const { payload } of channel.queued.splice(0)) this.#lose(channel.id, payload, 'flush_ended')
  }

  #lose(channelId: string, payload: JsonObject, reason: LostPush['reason']): Pushed {
    this.events.record('lost', { channelId, payload, reason })
    return { payload, outcome: 'lost' }
  }
}
