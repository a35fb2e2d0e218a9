/**
 * A simulated xAgent: the client of one Base URL, as the protocol describes it. It dials, says hello, opens channels, acks
 * messages as scripted and sends finals. Used by the demo, and as the double of xAgent in the tests.
 */
import type { JsonObject } from '../protocol/packet.js'
import { Occurrences } from './occurrences.js'
import { objectField, textField, wireId, type PacketFields, type WirePacket } from './wire-packet.js'
import { ackFrames, takes, type AckPolicy, type MessagePolicy } from './xagent-ack.js'
import type { ReceivedMessage, XagentEvents } from './xagent-events.js'
import { XagentLink } from './xagent-link.js'

export interface SimXagentOptions {
  /** What an administrator would enter for this connector. */
  readonly baseUrl: string
  readonly apiKey?: string | null
  /** Stored by an earlier life; empty = never connected. Replaced by what the connector answers. */
  readonly connectorId?: string
  /** `supported_profiles` of hello; null leaves the field out. */
  readonly profiles?: readonly string[] | null
  /** `protocol_version` of hello; null leaves the field out. */
  readonly protocolVersion?: string | null
  /** Wall clock, Unix ms. */
  readonly now?: () => number
}

export interface OpenedChannel {
  readonly channelId: string
  readonly descriptor: JsonObject
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export interface FinalMessage {
  readonly messageId: string
  readonly text?: string
  readonly files?: readonly JsonObject[]
  /** Further payload fields, such as ones that are forbidden. */
  readonly fields?: JsonObject
  /** The transmission's id; a new one by default. */
  readonly packetId?: string
}

export class SimXagent {
  readonly events = new Occurrences<XagentEvents>()
  /** Channels to re-open after a disconnect. */
  readonly channels = new Set<string>()
  /** The latest Descriptor of each channel. */
  readonly descriptors = new Map<string, JsonObject>()
  connectorId: string
  #policy: MessagePolicy = () => 'accepted'
  #link: XagentLink | null = null
  #cardId: string | null = null
  readonly #taken = new Set<string>()
  readonly #seen = new Set<string>()
  readonly #now: () => number

  constructor(private readonly options: SimXagentOptions) {
    this.connectorId = options.connectorId ?? ''
    this.#now = options.now ?? Date.now
  }

  /** Dials and says hello. Rejects when either is refused, naming the code. */
  async connect(): Promise<void> {
    await this.dial()
    const answer = await this.hello()
    if (answer.error !== undefined) throw new Error(`hello was refused: ${answer.error.code}`)
    this.connectorId = textField(answer.payload, 'connector_id')
  }

  /** Dials without a hello. */
  async dial(): Promise<void> {
    const url = `${this.options.baseUrl.replace(/^http/, 'ws')}/ws`
    const link = await XagentLink.dial({
      url, apiKey: this.options.apiKey ?? null, onPacket: (packet) => this.#receive(packet), now: this.#now,
    })
    this.#link = link
    void link.closed.then((end) => {
      if (this.#link === link) this.#link = null
      this.events.record('closed', end)
    })
  }

  /** Says hello and resolves with the answer, a refusal too. `fields` replace those of the payload. */
  async hello(fields: JsonObject = {}): Promise<WirePacket> {
    const { profiles = ['xagent.im.v1', 'xagent.im.v2'], protocolVersion = '3.0' } = this.options
    this.#cardId ??= textField(await this.fetchJson('/connector-card.json'), 'connector_card_id')
    return this.request('connector.hello', '', {
      connector_card_id: this.#cardId,
      connector_id: this.connectorId,
      ...(protocolVersion !== null && { protocol_version: protocolVersion }),
      ...(profiles !== null && { supported_profiles: profiles }),
      ...fields,
    })
  }

  /** Opens a channel, a new one without an id. Rejects when that is refused, naming the code. */
  async openChannel(channelId = ''): Promise<OpenedChannel> {
    const answer = await this.request('channel.open', channelId, {})
    if (answer.error !== undefined) throw new Error(`channel.open was refused: ${answer.error.code}`)
    const opened = {
      channelId: textField(answer.payload, 'connector_channel_id'),
      descriptor: objectField(answer.payload, 'connection_descriptor'),
    }
    this.channels.add(opened.channelId)
    this.descriptors.set(opened.channelId, opened.descriptor)
    return opened
  }

  /** Cuts the link, dials again and re-opens every channel at once, as xAgent does. */
  async disconnectAndReopen(): Promise<readonly OpenedChannel[]> {
    await this.terminate()
    return this.reconnect()
  }

  /** Dials again and re-opens every channel at once. */
  async reconnect(): Promise<readonly OpenedChannel[]> {
    await this.connect()
    return Promise.all([...this.channels].map((channelId) => this.openChannel(channelId)))
  }

  /** How messages are answered from now on; without a policy all are accepted. */
  onMessage(policy: AckPolicy | MessagePolicy): void {
    this.#policy = typeof policy === 'function' ? policy : () => policy
  }

  /** Every `chat.message` frame that came, redeliveries included. */
  get received(): readonly ReceivedMessage[] {
    return this.events.all('message')
  }

  get connected(): boolean {
    return this.#link?.open === true
  }

  /** Sends a final and resolves with what answers it: its ack, or an error. */
  sendFinal(channelId: string, final: FinalMessage): Promise<WirePacket> {
    const { messageId, text, files, fields, packetId } = final
    return this.#connected().ask({
      ...(packetId !== undefined && { packet_id: packetId }),
      type: 'chat.message',
      connector_channel_id: channelId,
      payload: {
        message_id: messageId,
        ...(text !== undefined && { text }),
        ...(files !== undefined && { files }),
        created_at: this.#now(),
        ...fields,
      },
    })
  }

  sendDelta(channelId: string, delta: { messageId: string; sequence: number; text: string }): WirePacket {
    const { messageId, sequence, text } = delta
    const payload = { message_id: messageId, sequence, text }
    return this.send({ type: 'chat.message.delta', connector_channel_id: channelId, payload })
  }

  sendActivity(channelId: string, status: string, toolName?: string): WirePacket {
    const payload = { status, ...(toolName !== undefined && { tool_name: toolName }) }
    return this.send({ type: 'chat.activity', connector_channel_id: channelId, payload })
  }

  /** Sends a request and resolves with its answer, in whichever error shape. */
  request(type: string, channelId: string, payload: JsonObject): Promise<WirePacket> {
    return this.#connected().ask({ type, request_id: wireId('req_'), connector_channel_id: channelId, payload })
  }

  /** Sends any packet that expects no answer. */
  send(fields: PacketFields): WirePacket {
    return this.#connected().send(fields)
  }

  /** Sends a text frame as it is. */
  sendRaw(text: string): void {
    this.#connected().sendText(text)
  }

  sendBinary(bytes: Uint8Array): void {
    this.#connected().sendBinary(bytes)
  }

  /** A ping of the WebSocket level; resolves with its pong. */
  ping(): Promise<void> {
    return this.#connected().ping()
  }

  /** Leaves politely. Does nothing without a link. */
  async close(): Promise<void> {
    await this.#link?.close()
  }

  /** Cuts the link. Does nothing without one. */
  async terminate(): Promise<void> {
    await this.#link?.terminate()
  }

  /** As `Occurrences.waitFor`: the first that was or will be. */
  waitFor<Kind extends keyof XagentEvents>(
    kind: Kind, predicate?: (what: XagentEvents[Kind]) => boolean, timeoutMs?: number,
  ): Promise<XagentEvents[Kind]> {
    return this.events.waitFor(kind, predicate, timeoutMs)
  }

  /** GET of one endpoint under the Base URL, with the key. */
  async fetch(path: string): Promise<HttpAnswer> {
    const { baseUrl, apiKey = null } = this.options
    const response = await fetch(baseUrl + path, { headers: apiKey === null ? {} : { authorization: `Bearer ${apiKey}` } })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  /** As `fetch`, for a JSON document. Rejects unless the answer is a 200. */
  async fetchJson(path: '/connector-card.json' | '/health'): Promise<JsonObject> {
    const { status, text } = await this.fetch(path)
    if (status !== 200) throw new Error(`GET ${path} was answered ${status}`)
    return JSON.parse(text) as JsonObject
  }

  #receive(packet: WirePacket): void {
    this.events.record('packet', packet)
    switch (packet.type) {
      case 'chat.message': return this.#message(packet)
      case 'connection.descriptor.push': return this.#descriptor(packet)
      case 'error': return this.events.record('error', packet)
      case 'ping': {
        this.send({ type: 'pong', request_id: packet.request_id, reply_to: packet.packet_id })
        return
      }
      default:
    }
  }

  #message(packet: WirePacket): void {
    const { payload = {}, connector_channel_id: channelId = '' } = packet
    const messageId = textField(payload, 'message_id')
    const key = JSON.stringify([channelId, messageId])
    const message: ReceivedMessage = {
      packetId: packet.packet_id,
      channelId,
      messageId,
      text: typeof payload['text'] === 'string' ? payload['text'] : '',
      files: Array.isArray(payload['files']) ? (payload['files'] as JsonObject[]) : [],
      payload,
      time: packet.time,
      at: this.#now(),
      repeated: this.#seen.has(key),
    }
    this.#seen.add(key)
    const decision = this.#policy(message)
    if (decision instanceof Promise) void decision.then((policy) => this.#answer(message, policy, key))
    else this.#answer(message, decision, key)
    this.events.record('message', message)
  }

  #answer(message: ReceivedMessage, policy: AckPolicy, key: string): void {
    const frames = ackFrames(policy, message, this.#taken.has(key))
    if (takes(policy)) this.#taken.add(key)
    // The link may be gone by the time a slow policy has decided: then the ack is lost, as it would be.
    if (!this.connected) return
    for (const frame of frames) {
      if (typeof frame === 'string') this.sendRaw(frame)
      else this.send(frame)
    }
  }

  #descriptor(packet: WirePacket): void {
    const channelId = packet.connector_channel_id ?? ''
    const descriptor = objectField(packet.payload, 'connection_descriptor')
    this.descriptors.set(channelId, descriptor)
    this.events.record('descriptor', { channelId, descriptor })
  }

  #connected(): XagentLink {
    if (this.#link === null) throw new Error('the simulated xAgent is not connected')
    return this.#link
  }
}
