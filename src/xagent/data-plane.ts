/**
 * The WebSocket side of the listener (PROTOCOL "Envelope"): text frames, one packet each, decoded and handed to the route in
 * wire order. It knows limits and framing; what a packet means, the route knows.
 */
import type { WebSocket } from 'uWebSockets.js'
import type { Clock } from '../ops/clock.js'
import type { LinkId, PacketId } from '../protocol/ids.js'
import { decodePacket, type Packet, type Undecodable } from '../protocol/packet.js'
import { SocketLink } from './link.js'
import type { LinkTable } from './link-table.js'
import type { ForcedClose, ListenerEvent } from './listener-event.js'
import type { NorthRoute } from './port.js'
import { RateLimit } from './rate-limit.js'

/** What the upgrade decided, handed over with the socket. */
export interface Admitted {
  readonly route: NorthRoute
  readonly remoteAddress: string
}

export interface DataPlaneOptions {
  readonly limits: {
    readonly maxFrameBytes: number
    readonly helloTimeoutMs: number
    readonly packetsPerSecond: number
  }
  readonly maxBackpressureBytes: number
  readonly clock: Clock
  readonly newId: () => string
  readonly links: LinkTable
  readonly observe: (event: ListenerEvent) => void
}

/** One link and what is counted about it. */
interface Seat {
  readonly link: SocketLink
  readonly route: NorthRoute
  readonly rate: RateLimit
  readonly cancelHelloTimeout: () => void
  /** Undecodable frames in a row. */
  undecodable: number
}

/** More undecodable frames than this in a row, and the other end is not speaking this protocol. */
const MAX_UNDECODABLE_IN_A_ROW = 20
/** RFC 6455 §7.4.1 */
const CLOSE_CODES: Readonly<Record<ForcedClose, { readonly code: number; readonly reason: string }>> = {
  binary_frame: { code: 1003, reason: 'binary_frame: text frames only, one JSON packet each' },
  frame_too_large: { code: 1009, reason: 'frame_too_large: the frame exceeds the limit' },
  invalid_packets: { code: 1008, reason: 'invalid_packets: too many frames that are no packet' },
  rate_limited: { code: 1008, reason: 'rate_limited: too many packets a second' },
  hello_timeout: { code: 1008, reason: 'hello_timeout: connector.hello did not come in time' },
  internal_error: { code: 1011, reason: 'internal_error' },
}

export class DataPlane {
  readonly #options: DataPlaneOptions
  /** By socket object: what uWebSockets.js keeps for us cannot be asked for once the socket is closed. */
  readonly #seats = new Map<WebSocket<Admitted>, Seat>()

  constructor(options: DataPlaneOptions) {
    this.#options = options
  }

  opened(socket: WebSocket<Admitted>): void {
    const { route, remoteAddress } = socket.getUserData()
    const { clock, limits, links } = this.#options
    const link = new SocketLink(socket as WebSocket<unknown>, {
      id: this.#options.newId() as LinkId,
      remoteAddress,
      maxFrameBytes: limits.maxFrameBytes,
      drainedBelowBytes: this.#options.maxBackpressureBytes / 2,
      onHello: () => cancelHelloTimeout(),
    })
    const cancelHelloTimeout = clock.timer(limits.helloTimeoutMs, () => this.#forceClose(seat, 'hello_timeout'))
    const seat: Seat = { link, route, rate: new RateLimit(limits.packetsPerSecond, clock.monotonic()), cancelHelloTimeout, undecodable: 0 }
    this.#seats.set(socket, seat)
    links.add(link)
    this.#guarded(seat, () => route.onLinkOpened(link))
  }

  /** `frame` is valid during this call only. */
  received(socket: WebSocket<Admitted>, frame: ArrayBuffer, isBinary: boolean): void {
    const seat = this.#seats.get(socket)
    if (seat === undefined) return
    if (isBinary) return this.#forceClose(seat, 'binary_frame')
    if (frame.byteLength > this.#options.limits.maxFrameBytes) return this.#forceClose(seat, 'frame_too_large')
    const decoded = decodePacket(Buffer.from(frame).toString())
    const counts = decoded.ok ? this.#deliver(seat, decoded.value) : this.#refuse(seat, decoded.error, frame.byteLength)
    if (counts && !seat.rate.take(this.#options.clock.monotonic())) this.#forceClose(seat, 'rate_limited')
  }

  drained(socket: WebSocket<Admitted>): void {
    const seat = this.#seats.get(socket)
    if (seat?.link.hasDrained() !== true) return
    this.#guarded(seat, () => seat.route.onDrain(seat.link))
  }

  closed(socket: WebSocket<Admitted>): void {
    const seat = this.#seats.get(socket)
    if (seat === undefined) return
    this.#seats.delete(socket)
    seat.link.detach()
    seat.cancelHelloTimeout()
    this.#options.links.remove(seat.link)
    this.#guarded(seat, () => seat.route.onLinkClosed(seat.link))
  }

  /** Whether the packet counts against the link's rate. */
  #deliver(seat: Seat, packet: Packet): boolean {
    seat.undecodable = 0
    return this.#guarded(seat, () => seat.route.onPacket(seat.link, packet).countsAgainstLimit) ?? true
  }

  /** An undecodable frame is answered, so that the other end can see what is wrong (PROTOCOL: protocol faults are `error`). */
  #refuse(seat: Seat, fault: Undecodable, bytes: number): true {
    const { clock, newId, observe } = this.#options
    seat.undecodable += 1
    observe({ kind: 'undecodable', route: seat.route.name, link: seat.link.id, bytes })
    seat.link.send({
      packetId: newId() as PacketId,
      ...(fault.requestId !== undefined && { requestId: fault.requestId }),
      ...(fault.packetId !== undefined && { replyTo: fault.packetId }),
      type: 'error',
      time: Math.trunc(clock.wall()),
      payload: {},
      error: { code: fault.code, ...(fault.message !== undefined && { message: fault.message }) },
    })
    if (seat.undecodable > MAX_UNDECODABLE_IN_A_ROW) this.#forceClose(seat, 'invalid_packets')
    return true
  }

  #forceClose(seat: Seat, reason: ForcedClose): void {
    if (seat.link.closed) return
    this.#options.observe({ kind: 'closed', route: seat.route.name, link: seat.link.id, reason })
    seat.link.close(CLOSE_CODES[reason].code, CLOSE_CODES[reason].reason)
  }

  /** A bug met on one link must not take the other links with it: that link is closed, the rest goes on. */
  #guarded<T>(seat: Seat, call: () => T): T | undefined {
    try {
      return call()
    } catch (error) {
      this.#options.observe({ kind: 'failed', route: seat.route.name, error })
      this.#forceClose(seat, 'internal_error')
      return undefined
    }
  }
}
