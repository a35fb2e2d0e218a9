/** One xAgent socket as routes see it: packets in, a verdict on every send, nothing that throws on a closed socket. */
import type { WebSocket } from 'uWebSockets.js'
import type { LinkId } from '../protocol/ids.js'
import { encodePacket, type Packet } from '../protocol/packet.js'
import type { XagentLink } from './port.js'

export interface LinkOptions {
  readonly id: LinkId
  readonly remoteAddress: string
  readonly maxFrameBytes: number
  /** The buffer counts as having room again below this. */
  readonly drainedBelowBytes: number
  readonly onHello: () => void
}

/** uWebSockets.js: `send` gives 1 = sent, 0 = buffered (it will be sent), 2 = dropped. */
const DROPPED = 2
/** RFC 6455 §5.5: a control frame holds 125 bytes, two of them the code. */
const MAX_REASON_BYTES = 123

export class SocketLink implements XagentLink {
  readonly id: LinkId
  readonly remoteAddress: string
  readonly #options: LinkOptions
  #socket: WebSocket<unknown> | null
  #full = false

  constructor(socket: WebSocket<unknown>, options: LinkOptions) {
    this.#socket = socket
    this.#options = options
    this.id = options.id
    this.remoteAddress = options.remoteAddress
  }

  get closed(): boolean {
    return this.#socket === null
  }

  send(packet: Packet): 'queued' | 'full' | 'too_large' | 'closed' {
    if (this.#socket === null) return 'closed'
    const frame = Buffer.from(encodePacket(packet))
    if (frame.byteLength > this.#options.maxFrameBytes) return 'too_large'
    if (this.#socket.send(frame, false, false) !== DROPPED) return 'queued'
    this.#full = true
    return 'full'
  }

  helloDone(): void {
    this.#options.onHello()
  }

  close(code: number, reason: string): void {
    this.#socket?.end(code, shortened(reason))
  }

  /** To be called when the buffer has shrunk: whether a link that was full has room again. */
  hasDrained(): boolean {
    if (!this.#full || this.#socket === null || this.#socket.getBufferedAmount() > this.#options.drainedBelowBytes) return false
    this.#full = false
    return true
  }

  /** The socket is gone: any further call on it would throw. */
  detach(): void {
    this.#socket = null
  }
}

/** Cut between code points. */
function shortened(reason: string): string {
  let text = ''
  for (const point of reason.toWellFormed()) {
    if (Buffer.byteLength(text) + Buffer.byteLength(point) > MAX_REASON_BYTES) break
    text += point
  }
  return text
}
