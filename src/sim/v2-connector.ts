/**
 * A simulated connector that speaks `xagent.im.v2` by the book (v2 §5-§9): it keeps what nobody has acked, acks finals once,
 * and takes deltas and activity. As the double of a connector that the gateway relays.
 */
import type { WebSocket } from 'ws'
import type { JsonObject } from '../protocol/packet.js'
import { Answers } from './connector-answers.js'
import type { ConnectorEvents } from './connector-events.js'
import { ConnectorMedia, type MediaMemory, type SimMedia } from './connector-media.js'
import { ConnectorHttp } from './connector-http.js'
import { ConnectorSocket } from './connector-socket.js'
import { Occurrences } from './occurrences.js'
import { v2Card, v2Descriptor, v2Health } from './v2-documents.js'
import { readWirePacket, textField, wireId, wirePacket, type PacketFields, type WirePacket } from './wire-packet.js'

export interface V2ConnectorOptions {
  readonly cardId: string
  readonly host?: string
  /** 0 = any free port. */
  readonly port?: number
  /** Null = no key is asked for. */
  readonly apiKey?: string | null
  /** What the Card lists at first. */
  readonly profiles?: readonly string[]
  /** Takes every hello, whatever profiles it offers, as 1.0 servers do. */
  readonly anyProfile?: boolean
  readonly tools?: readonly JsonObject[]
  /** The Skill's Markdown. */
  readonly skill?: string
  /** Wall clock, Unix ms. */
  readonly now?: () => number
}

/** A message of a person that is kept until a terminal ack (v2 §9). */
export interface PendingMessage {
  readonly channelId: string
  readonly payload: JsonObject
}

export interface V2Events {
  /** Every packet that came. */
  readonly packet: WirePacket
  readonly hello: { readonly accepted: boolean; readonly payload: JsonObject }
  readonly open: { readonly asked: string; readonly channelId: string }
  /** A final, further transmissions included. */
  readonly final: WirePacket
  readonly ack: WirePacket
}

export type FinalPolicy = 'accepted' | 'none' | JsonObject

export class SimV2Connector {
  readonly events = new Occurrences<V2Events>()
  /** Its HTTP side: requests and uploads. */
  readonly http = new Occurrences<ConnectorEvents>()
  /** Bytes under its references. */
  readonly files = new Map<string, SimMedia>()
  readonly media: ConnectorMedia
  /** What the Card lists, and hello is checked against. */
  profiles: readonly string[]
  /** How finals are answered: accepted once and `duplicate` afterwards, not at all, or with this ack. */
  onFinal: FinalPolicy = 'accepted'
  readonly #options: V2ConnectorOptions
  readonly #now: () => number
  readonly #answers: Answers
  readonly #http: ConnectorHttp
  readonly #channels = new Map<string, ConnectorSocket | null>()
  readonly #sockets = new Set<ConnectorSocket>()
  readonly #pending = new Map<string, PendingMessage>()
  readonly #taken = new Set<string>()
  #socketCount = 0

  constructor(options: V2ConnectorOptions) {
    const { host = '127.0.0.1', port = 0, apiKey = null, profiles = ['xagent.im.v2'], now = Date.now } = options
    this.#options = options
    this.profiles = profiles
    this.#now = now
    this.#answers = new Answers(now)
    const channels = { get: (id: string) => (this.#channels.has(id) ? { account: {} } : undefined) } as MediaMemory['channels']
    this.media = new ConnectorMedia({ mediaRefPrefix: 'file_' }, '3.0', { media: this.files, mediaRefs: new Set(), channels }, this.http, now)
    this.#http = new ConnectorHttp({
      host, port, prefix: '', apiKey, events: this.http,
      card: () => v2Card(options.cardId, this.profiles, options.tools ?? []), skill: () => options.skill ?? '', health: () => v2Health(options.cardId, this.profiles),
      onSocket: (ws) => this.#accept(ws),
      media: (path, request, response, authorized) => this.media.handle(path, request, response, authorized),
    })
  }

  get url(): string {
    return this.#http.url
  }

  async start(): Promise<void> {
    await this.#http.start()
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.kill()
    this.#sockets.clear()
    await this.#http.stop()
  }

  dropSockets(): void {
    for (const socket of this.#sockets) socket.terminate()
  }

  /** Ids of the channels that were opened, in order. */
  get channelIds(): readonly string[] {
    return [...this.#channels.keys()]
  }

  /** Messages that wait for a terminal ack. */
  get pending(): readonly PendingMessage[] {
    return [...this.#pending.values()]
  }

  /** A person writes: sent, and kept until it is acked. Answers the packet as it was sent, or null without a socket. */
  write(channelId: string, payload: JsonObject): WirePacket | null {
    this.#pending.set(textField(payload, 'message_id'), { channelId, payload })
    return this.send(channelId, { type: 'chat.message', payload })
  }

  /** Every message that waits, under a new packet id each (v2 §9). */
  redeliver(channelId?: string): void {
    for (const pending of this.#pending.values()) {
      if (channelId === undefined || channelId === pending.channelId) this.send(pending.channelId, { type: 'chat.message', payload: pending.payload })
    }
  }

  /** Any packet on a channel. */
  send(channelId: string, fields: PacketFields): WirePacket | null {
    const packet = wirePacket({ connector_channel_id: channelId, ...fields }, this.#now())
    return this.#channels.get(channelId)?.send(packet) === true ? packet : null
  }

  waitFor<Kind extends keyof V2Events>(kind: Kind, predicate?: (what: V2Events[Kind]) => boolean): Promise<V2Events[Kind]> {
    return this.events.waitFor(kind, predicate)
  }

  #accept(ws: WebSocket): void {
    const socket = new ConnectorSocket((this.#socketCount += 1), ws, {
      onText: (from, text) => this.#receive(from, text),
      onClosed: () => this.#sockets.delete(socket),
      onGone: (gone) => {
        for (const [id, opener] of this.#channels) if (opener === gone) this.#channels.set(id, null)
      },
    })
    this.#sockets.add(socket)
  }

  #receive(socket: ConnectorSocket, text: string): void {
    const packet = readWirePacket(text)
    if (packet === null) return
    this.events.record('packet', packet)
    if (packet.type === 'connector.hello') return this.#hello(socket, packet)
    if (!socket.hello) return this.#answers.error(socket, packet, { code: 'hello_required' })
    const channelId = packet.connector_channel_id ?? ''
    switch (packet.type) {
      case 'ping': return this.#answers.pong(socket, packet)
      case 'channel.open': return this.#open(socket, packet)
      case 'channel.close': return this.#answers.ack(socket, packet, { status: 'ok' })
      case 'connection.descriptor.get': return this.#answers.ack(socket, packet, { connection_descriptor: this.#descriptor(channelId) })
      case 'tool.invoke': return this.#answers.ack(socket, packet, { tool_id: packet.payload?.['tool_id'], result: { message_id: 'platform_1' } })
      case 'chat.message': return this.#final(socket, packet)
      case 'chat.message.ack': return this.#acked(packet)
      default:
    }
  }

  #hello(socket: ConnectorSocket, packet: WirePacket): void {
    const payload = packet.payload ?? {}
    const offered = Array.isArray(payload['supported_profiles']) ? payload['supported_profiles'] : []
    socket.hello = this.#options.anyProfile === true || this.profiles.some((profile) => offered.includes(profile))
    if (socket.hello) this.#answers.ack(socket, packet, { connector_card_id: this.#options.cardId, connector_id: 'instance_v2', protocol_version: '3.0' })
    else this.#answers.error(socket, packet, { code: 'profile_not_supported' })
    this.events.record('hello', { accepted: socket.hello, payload })
  }

  /** Opening restores unfinished delivery (v2 §1). */
  #open(socket: ConnectorSocket, packet: WirePacket): void {
    const asked = packet.connector_channel_id ?? ''
    const channelId = asked === '' ? wireId('cch_v2_') : asked
    this.#channels.set(channelId, socket)
    this.#answers.ack(socket, packet, { connector_channel_id: channelId, connection_descriptor: this.#descriptor(channelId) }, channelId)
    this.events.record('open', { asked, channelId })
    this.redeliver(channelId)
  }

  #final(socket: ConnectorSocket, packet: WirePacket): void {
    const messageId = textField(packet.payload, 'message_id')
    const known = this.#taken.has(messageId)
    if (this.onFinal === 'accepted') this.#taken.add(messageId)
    const ack = typeof this.onFinal === 'string' ? { message_id: messageId, status: known ? 'duplicate' : 'accepted' } : { message_id: messageId, ...this.onFinal }
    if (this.onFinal !== 'none') this.#answers.ack(socket, packet, ack)
    this.events.record('final', packet)
  }

  #acked(packet: WirePacket): void {
    const { status, message_id: id, retryable } = packet.payload ?? {}
    if (status !== 'rejected' || retryable === false) this.#pending.delete(String(id))
    this.events.record('ack', packet)
  }

  #descriptor(channelId: string): JsonObject {
    return v2Descriptor(this.#options.cardId, channelId, this.profiles, this.#options.tools ?? [])
  }
}
