/** One WebSocket to a connector: dialling, frames, pausing, and every way to end told as one `LinkEnd`. */
import type { IncomingMessage } from 'node:http'
import WebSocket from 'ws'
import type { Cancel, Clock } from '../ops/clock.js'
import { SUBPROTOCOL } from '../protocol/version.js'
import { dataPlaneUrl } from './base-url.js'
import { upgradeRefused, type LinkEnd } from './link-end.js'
import type { LegacyTiming } from './timing.js'

/** Where a connector is and what may come from it. */
export interface LegacyEndpoint {
  /** `http:` or `https:`; a path prefix is kept. */
  readonly baseUrl: string
  readonly apiKey: string | null
  /** PEM text of a private CA; null = the runtime's own list. */
  readonly ca: string | null
  /** Largest frame taken. A push can be 4-6 times the user's text. */
  readonly maxFrameBytes: number
}

export interface SocketEvents {
  readonly onOpen: () => void
  readonly onText: (text: string, bytes: number) => void
  readonly onBinary: (bytes: number) => void
  /** Once, and the last call. */
  readonly onEnd: (end: LinkEnd) => void
}

export class LegacySocket {
  readonly #ws: WebSocket
  readonly #clock: Clock
  readonly #closeGraceMs: number
  readonly #maxFrameBytes: number
  #opened = false
  /** The first reason found counts: what follows (1006, aborted handshakes) is only its echo. */
  #end: LinkEnd | null = null

  constructor(endpoint: LegacyEndpoint, timing: LegacyTiming, clock: Clock, events: SocketEvents) {
    this.#clock = clock
    this.#closeGraceMs = timing.closeGraceMs
    this.#maxFrameBytes = endpoint.maxFrameBytes
    const ws = new WebSocket(dataPlaneUrl(endpoint.baseUrl), [SUBPROTOCOL], {
      maxPayload: endpoint.maxFrameBytes,
      perMessageDeflate: false,
      followRedirects: false,
      headers: endpoint.apiKey === null ? {} : { authorization: `Bearer ${endpoint.apiKey}` },
      ...(endpoint.ca !== null && { ca: endpoint.ca }),
    })
    this.#ws = ws
    const handshake = clock.timer(timing.handshakeMs, () => {
      this.terminate({ cause: 'unreachable', reason: `no WebSocket within ${timing.handshakeMs} ms` })
    })
    this.#listen(handshake, events)
  }

  get open(): boolean {
    return this.#ws.readyState === WebSocket.OPEN
  }

  /** Hands one text frame to the socket; false = certainly not sent, because it is not open. */
  send(text: string): boolean {
    if (!this.open) return false
    // A write that fails ends the socket, which is told by `onEnd`.
    this.#ws.send(text, () => {})
    return true
  }

  /** Stops or resumes reading; to be repeated after `onOpen`, a socket that is still dialling ignores it. */
  setReading(reading: boolean): void {
    if (reading) this.#ws.resume()
    else this.#ws.pause()
  }

  /** Closes politely; what still comes before the connector's close frame is delivered. Resolves after `onEnd`. */
  async close(reason: string): Promise<void> {
    if (this.#ws.readyState === WebSocket.CLOSED) return
    this.#end ??= { cause: 'closed', reason }
    const closed = new Promise<void>((resolve) => {
      this.#ws.once('close', () => resolve())
    })
    const cancel = this.#clock.timer(this.#closeGraceMs, () => this.#ws.terminate())
    this.#ws.resume()
    this.#ws.close(1000, closeReason(reason))
    await closed
    cancel()
  }

  /** Cuts the socket. */
  terminate(end: LinkEnd): void {
    this.#end ??= end
    this.#ws.terminate()
  }

  #listen(handshake: Cancel, events: SocketEvents): void {
    const ws = this.#ws
    ws.on('open', () => {
      handshake()
      this.#opened = true
      events.onOpen()
    })
    ws.on('message', (data: Buffer, isBinary: boolean) => {
      if (isBinary) events.onBinary(data.length)
      else events.onText(data.toString(), data.length)
    })
    ws.on('unexpected-response', (_request: unknown, response: IncomingMessage) => {
      this.terminate(upgradeRefused(response.statusCode ?? 0))
    })
    ws.on('error', (error: NodeJS.ErrnoException) => {
      this.#end ??= this.#failed(error)
    })
    ws.on('close', (code: number) => {
      handshake()
      events.onEnd(this.#end ?? { cause: 'lost', reason: `closed with code ${code}` })
    })
  }

  #failed(error: NodeJS.ErrnoException): LinkEnd {
    if (error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') {
      return { cause: 'lost', reason: `a frame is larger than ${this.#maxFrameBytes} bytes` }
    }
    if (this.#opened) return { cause: 'lost', reason: `broken: ${error.code ?? error.name}` }
    // Without a code it is the WebSocket library's own verdict on the upgrade (no subprotocol, a wrong header).
    if (error.code === undefined) return { cause: 'refused', reason: `no usable WebSocket: ${error.message}` }
    return { cause: 'unreachable', reason: `cannot connect: ${error.code}` }
  }
}

/** A close frame has room for 123 bytes of reason (RFC 6455 §5.5). */
function closeReason(reason: string): string {
  return Buffer.from(reason).subarray(0, 120).toString()
}
