/** What a simulated connector does with each packet type. */
import type { WireError } from '../protocol/errors.js'
import type { JsonObject } from '../protocol/packet.js'
import type { Answers } from './connector-answers.js'
import { cardId, type Dialect } from './connector-dialect.js'
import type { ConnectorEvents, ToolCall } from './connector-events.js'
import type { ConnectorKind } from './connector-kind.js'
import type { ConnectorMemory, SimChannel } from './connector-memory.js'
import type { ConnectorPushes } from './connector-pushes.js'
import type { ConnectorSignIn } from './connector-sign-in.js'
import type { ConnectorSocket } from './connector-socket.js'
import type { ConnectorTools } from './connector-tools.js'
import type { Occurrences } from './occurrences.js'
import { objectField, readWirePacket, textField, type WirePacket } from './wire-packet.js'

const NOT_FOUND = { code: 'connection_not_found', message: 'channel is not bound to a valid connection' } as const
const NOT_JSON = { code: 'invalid_packet', message: "invalid character 'o' looking for beginning of object key string" } as const
const HELLO_REQUIRED = { code: 'hello_required', message: 'connector.hello must be accepted before user packets' } as const

export interface PacketParts {
  readonly kind: ConnectorKind
  readonly dialect: Dialect
  readonly memory: ConnectorMemory
  readonly answers: Answers
  readonly events: Occurrences<ConnectorEvents>
  readonly tools: ConnectorTools
  readonly signIn: ConnectorSignIn
  readonly pushes: ConnectorPushes
  readonly descriptor: (channel: SimChannel) => JsonObject
  readonly now: () => number
}

export class ConnectorPackets {
  /** Awaited between the opening of a channel and its ack: what is pushed meanwhile comes before the ack. */
  beforeOpenAck: (channelId: string) => void | Promise<void> = () => undefined

  constructor(private readonly parts: PacketParts) {}

  async handle(socket: ConnectorSocket, text: string): Promise<void> {
    const { answers, events } = this.parts
    const packet = readWirePacket(text)
    if (packet === null) return answers.error(socket, null, NOT_JSON)
    events.record('packet', { socket: socket.id, packet })
    if (packet.type === 'connector.hello') return this.#hello(socket, packet)
    if (!socket.hello) return answers.error(socket, packet, HELLO_REQUIRED)
    await this.#dispatch(socket, packet)
  }

  async #dispatch(socket: ConnectorSocket, packet: WirePacket): Promise<void> {
    const { answers, signIn } = this.parts
    switch (packet.type) {
      case 'ping': return answers.pong(socket, packet)
      case 'channel.open': return this.#open(socket, packet)
      case 'channel.close': return this.#onOpenChannel(socket, packet, (channel) => this.#close(socket, packet, channel))
      case 'connection.descriptor.get': return this.#onOpenChannel(socket, packet, (channel) =>
        answers.ack(socket, packet, { connection_descriptor: this.parts.descriptor(channel) }))
      case 'auth.start': return this.#onOpenChannel(socket, packet, (channel) => signIn.start(socket, packet, channel))
      case 'auth.status': return this.#onOpenChannel(socket, packet, (channel) => signIn.status(socket, packet, channel))
      case 'auth.cancel': return this.#onOpenChannel(socket, packet, () => signIn.cancel(socket, packet))
      case 'auth.logout': return this.#onOpenChannel(socket, packet, (channel) => this.#logout(socket, packet, channel))
      case 'tool.invoke': return this.#tool(socket, packet)
      // An ack of a push and a pong are as unknown to them as a chat.message.
      default: return answers.error(socket, packet, { code: 'unsupported_packet', message: `unsupported packet type: ${packet.type}` })
    }
  }

  #hello(socket: ConnectorSocket, packet: WirePacket): void {
    const { answers, dialect, events, kind, memory } = this.parts
    const payload = packet.payload ?? {}
    const refusal = helloRefusal(payload, cardId(kind), dialect)
    // A wrong hello takes back an accepted one, while the pushes of open channels go on.
    socket.hello = refusal === null
    if (refusal !== null) answers.error(socket, packet, refusal)
    else {
      answers.ack(socket, packet, {
        connector_card_id: cardId(kind),
        connector_id: memory.adoptConnectorId(textField(payload, 'connector_id')),
        ...(dialect === '3.0' && { protocol_version: '3.0' }),
      })
    }
    events.record('hello', { socket: socket.id, accepted: refusal === null, payload })
  }

  async #open(socket: ConnectorSocket, packet: WirePacket): Promise<void> {
    const { answers, events, memory, pushes } = this.parts
    const asked = packet.connector_channel_id ?? ''
    const channel = memory.channels.get(asked) ?? memory.addChannel()
    // The latest opener has the channel; the one before is not told.
    channel.opener = socket
    await this.beforeOpenAck(channel.id)
    answers.ack(socket, packet, { connection_descriptor: this.parts.descriptor(channel), connector_channel_id: channel.id }, channel.id)
    events.record('open', { socket: socket.id, asked, channelId: channel.id })
    pushes.flush(channel)
  }

  #close(socket: ConnectorSocket, packet: WirePacket, channel: SimChannel): void {
    channel.opener = null
    this.parts.answers.ack(socket, packet, { status: 'ok' })
    this.parts.events.record('close', { socket: socket.id, channelId: channel.id })
  }

  #logout(socket: ConnectorSocket, packet: WirePacket, channel: SimChannel): void {
    channel.account = null
    this.parts.memory.endSessionsOf(channel.id)
    this.parts.answers.ack(socket, packet, { connection_descriptor: this.parts.descriptor(channel), status: 'ok' })
  }

  async #tool(socket: ConnectorSocket, packet: WirePacket): Promise<void> {
    const { dialect, events, memory, tools, now } = this.parts
    const channelId = packet.connector_channel_id ?? ''
    const call: ToolCall = {
      toolId: textField(packet.payload, 'tool_id'),
      channelId,
      arguments: objectField(packet.payload, 'arguments'),
      context: objectField(packet.payload, 'context'),
      requestId: packet.request_id ?? '',
      at: now(),
      socket: socket.id,
    }
    events.record('tool', call)
    const channel = memory.channels.get(channelId)
    if (dialect === '3.0' && channel?.opener !== socket) return this.#notOwned(socket, packet, channel)
    await tools.run(socket, packet, channel, call)
  }

  /** 1.0 lets any socket act on any open channel; 3.0 only the one that opened it. */
  #onOpenChannel(socket: ConnectorSocket, packet: WirePacket, act: (channel: SimChannel) => void): void {
    const { answers, dialect, memory } = this.parts
    const channel = memory.channels.get(packet.connector_channel_id ?? '')
    if (dialect === '3.0' && channel?.opener !== socket) return this.#notOwned(socket, packet, channel)
    if (!channel?.opener) return answers.error(socket, packet, NOT_FOUND)
    act(channel)
  }

  #notOwned(socket: ConnectorSocket, packet: WirePacket, channel: SimChannel | undefined): void {
    const code = !channel?.opener ? 'channel_not_open' : 'connector_channel_not_owned'
    this.parts.answers.error(socket, packet, { code, message: 'the channel is not open on this connection' })
  }
}

function helloRefusal(payload: JsonObject, expectedCardId: string, dialect: Dialect): WireError | null {
  if (payload['connector_card_id'] !== expectedCardId) {
    return { code: 'connector_card_id_mismatch', message: 'connector_card_id does not match this connector' }
  }
  if (dialect === '1.0') return null
  const major = Number.parseInt(textField(payload, 'protocol_version'), 10)
  if (!(major >= 3)) return { code: 'protocol_version_unsupported', message: 'protocol_version is required' }
  const profiles = payload['supported_profiles']
  if (Array.isArray(profiles) && profiles.includes('xagent.im.v1')) return null
  return { code: 'profile_not_supported', message: 'supported_profiles names no profile of this connector' }
}
