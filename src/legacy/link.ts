/**
 * One link to a legacy connector: hello, requests and their answers, liveness. It never answers a push and never sends a
 * pong of its own accord: 1.0 connectors take either as an `unsupported_packet` (docs/legacy.md).
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../ops/clock.js'
import { wireError, type WireError } from '../protocol/errors.js'
import type { ConnectorCardId, LegacyChannelId, LegacyConnectorId, PacketId, RequestId } from '../protocol/ids.js'
import { decodePacket, encodePacket, type JsonObject, type Packet } from '../protocol/packet.js'
import { PROTOCOL_VERSION } from '../protocol/version.js'
import { readHelloAck, refusalOf, type HelloAck } from './dialect.js'
import { helloRefused, type LinkEnd } from './link-end.js'
import { Liveness } from './liveness.js'
import { PendingRequests, type PendingRequest } from './pending-requests.js'
import { LegacySocket, type LegacyEndpoint } from './socket.js'
import type { LegacyTiming } from './timing.js'

/** Who we say we are in hello; asked anew for every dial, because the Card and the connector's id come and change later. */
export interface HelloIdentity {
  readonly cardId: ConnectorCardId
  /** The stored id of the connector's instance: the same on every link, or the connector starts a new one for everybody. */
  readonly connectorId: LegacyConnectorId | ''
}

export interface LinkOptions {
  readonly endpoint: LegacyEndpoint
  /** What hello offers, asked anew for every dial: a connector's Card can change from one profile to another. */
  readonly supportedProfiles: () => readonly string[]
  readonly timing: LegacyTiming
  readonly clock: Clock
}

export interface LinkEvents {
  readonly onUp: (hello: HelloAck) => void
  /** A packet that answers no request of ours; what came before `onUp` follows right after it. */
  readonly onPacket: (packet: Packet) => void
  readonly onUndecodable: (error: WireError, bytes: number) => void
  /** Once, and the last call: every request has been answered `link_lost` before. */
  readonly onEnd: (end: LinkEnd, wasUp: boolean) => void
}

/** How long to wait, and who is told. */
export type LinkRequest = Pick<PendingRequest, 'timeoutMs' | 'done' | 'onLate'>

/** Nothing is open before hello, so this many packets ahead of its ack are no accident. */
const MAX_EARLY_PACKETS = 1_000

export class Link {
  readonly #socket: LegacySocket
  readonly #pending: PendingRequests
  readonly #liveness: Liveness
  #phase: 'dialling' | 'up' | 'ended' = 'dialling'
  #paused = false
  #early: Packet[] = []

  /** Dials at once. Socket errors never throw, they come as `onEnd`. */
  constructor(
    private readonly options: LinkOptions,
    private readonly identity: HelloIdentity,
    private readonly events: LinkEvents,
  ) {
    const { clock, endpoint, timing } = options
    this.#pending = new PendingRequests(clock, () => this.#applyPause())
    this.#liveness = new Liveness(timing, clock, {
      ping: () => this.#ping(),
      judged: (silentMs) => this.#silenceCounts(silentMs),
      dead: () => this.terminate({ cause: 'lost', reason: 'no answer to ping' }),
    })
    this.#socket = new LegacySocket(endpoint, timing, clock, {
      onOpen: () => this.#hello(),
      onText: (text, bytes) => this.#receive(text, bytes),
      onBinary: (bytes) => {
        this.#liveness.received()
        events.onUndecodable(wireError('invalid_packet', 'a binary frame holds no packet'), bytes)
      },
      onEnd: (end) => this.#ended(end),
    })
  }

  get up(): boolean {
    return this.#phase === 'up' && this.#socket.open
  }

  /** As `MainLink.request`; on a link that is not up the answer is `not_connected`. */
  request(type: string, channelId: LegacyChannelId | '', payload: JsonObject, request: LinkRequest): void {
    if (this.up && this.#ask(type, channelId, payload, { ...request, type })) return
    queueMicrotask(() => request.done({ ok: false, error: { kind: 'not_connected', sent: false } }))
  }

  /** Sends a packet that no request of ours is; false = it certainly did not leave. */
  send(packet: Packet): boolean {
    return this.up && this.#socket.send(encodePacket(packet))
  }

  /** A paused link still reads while a request on it is open (DESIGN §4 Capacity), and is not judged for its silence. */
  setPaused(paused: boolean): void {
    this.#paused = paused
    this.#liveness.received()
    this.#applyPause()
  }

  /** Closes politely: packets that come before the connector's close frame are still delivered. */
  async close(reason: string): Promise<void> {
    // A paused socket would never read the connector's close frame.
    this.#paused = false
    await this.#socket.close(reason)
  }

  terminate(end: LinkEnd): void {
    this.#socket.terminate(end)
  }

  #hello(): void {
    const { options, identity } = this
    const payload = {
      connector_card_id: identity.cardId,
      connector_id: identity.connectorId,
      protocol_version: PROTOCOL_VERSION,
      supported_profiles: options.supportedProfiles(),
    }
    this.#ask('connector.hello', '', payload, {
      type: 'connector.hello',
      timeoutMs: options.timing.helloMs,
      done: (answer) => {
        if (answer.ok) this.#helloAnswered(answer.value)
        else if (answer.error.kind === 'timeout') this.terminate({ cause: 'unreachable', reason: 'no answer to connector.hello' })
      },
    })
  }

  #helloAnswered(packet: Packet): void {
    const ack = readHelloAck(packet, this.identity.cardId)
    if (!ack.ok) return this.terminate(helloRefused(ack.error.code))
    this.#phase = 'up'
    this.#liveness.start()
    this.#applyPause()
    this.events.onUp(ack.value)
    const early = this.#early
    this.#early = []
    for (const packet of early) this.events.onPacket(packet)
  }

  #receive(text: string, bytes: number): void {
    this.#liveness.received()
    const decoded = decodePacket(text)
    if (!decoded.ok) return this.events.onUndecodable(decoded.error, bytes)
    const packet = decoded.value
    if (this.#pending.settle(packet)) return
    if (packet.type === 'pong') return
    if (packet.type === 'ping') return this.#pong(packet)
    if (this.#phase === 'up') return this.events.onPacket(packet)
    this.#receiveEarly(packet)
  }

  #receiveEarly(packet: Packet): void {
    // Only hello can be meant: nothing else was said yet.
    const refusal = packet.type === 'error' && packet.requestId === undefined ? refusalOf(packet) : null
    if (refusal !== null) return this.terminate(helloRefused(refusal.code))
    this.#early.push(packet)
    if (this.#early.length <= MAX_EARLY_PACKETS) return
    this.terminate({ cause: 'refused', reason: 'too many packets before connector.hello.ack' })
  }

  #ping(): void {
    const { pingAnswerMs } = this.options.timing
    // With `onLate`, so that a late error answer is not taken for an unmatched one.
    this.#ask('ping', '', {}, { type: 'ping', timeoutMs: pingAnswerMs, background: true, done: () => {}, onLate: () => {} })
  }

  #pong(ping: Packet): void {
    if (ping.requestId === undefined || this.#phase !== 'up') return
    this.#socket.send(encodePacket({ ...this.#envelope('pong'), requestId: ping.requestId, replyTo: ping.packetId }))
  }

  #ask(type: string, channelId: LegacyChannelId | '', payload: JsonObject, request: PendingRequest): boolean {
    const requestId = `req_${randomUUID()}` as RequestId
    const packet = { ...this.#envelope(type), requestId, ...(channelId !== '' && { channelId }), payload }
    if (!this.#socket.send(encodePacket(packet))) return false
    this.#pending.add(requestId, request)
    return true
  }

  #envelope(type: string): Packet {
    return { packetId: `pkt_${randomUUID()}` as PacketId, type, time: this.options.clock.wall(), payload: {} }
  }

  #silenceCounts(silentMs: number): boolean {
    if (this.#paused || this.#pending.waiting > 0) return false
    return this.#pending.lateCalls === 0 || silentMs >= this.options.timing.lateCallMs
  }

  #applyPause(): void {
    if (this.#phase === 'up') this.#socket.setReading(!this.#paused || this.#pending.waiting > 0)
  }

  #ended(end: LinkEnd): void {
    const wasUp = this.#phase === 'up'
    this.#phase = 'ended'
    this.#liveness.stop()
    this.#pending.loseAll()
    this.events.onEnd(end, wasUp)
  }
}
