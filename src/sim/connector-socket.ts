/**
 * One socket of a simulated connector. Its frames are handled one after the other, as in a read loop that handles each before
 * it reads the next: a slow tool call delays everything behind it, pongs of the WebSocket level too, and what was sent before
 * the peer went away is still done. (The closing handshake alone is answered at once by the WebSocket library.)
 */
import type { WebSocket } from 'ws'
import type { WirePacket } from './wire-packet.js'

export interface SocketHandlers {
  readonly onText: (socket: ConnectorSocket, text: string) => void | Promise<void>
  /** The connection is gone; packets may still wait in the read loop. */
  readonly onClosed: () => void
  /** The read loop has come to the socket's end. */
  readonly onGone: (socket: ConnectorSocket) => void
}

export class ConnectorSocket {
  /** Whether a hello is accepted; a wrong one takes it back. */
  hello = false
  #killed = false
  #loop: Promise<void> = Promise.resolve()

  constructor(readonly id: number, private readonly ws: WebSocket, handlers: SocketHandlers) {
    ws.on('message', (data, isBinary) => {
      // Binary frames are ignored by the real connectors.
      if (!isBinary) this.#enqueue(() => handlers.onText(this, (data as Buffer).toString('utf8')))
    })
    ws.on('ping', (data) => this.#enqueue(() => this.open && ws.pong(data)))
    ws.on('close', () => {
      handlers.onClosed()
      this.#enqueue(() => handlers.onGone(this))
    })
    ws.on('error', () => undefined)
  }

  get open(): boolean {
    return this.ws.readyState === this.ws.OPEN
  }

  /** The process of this socket has ended. */
  get killed(): boolean {
    return this.#killed
  }

  /** Writes outside the read loop, as pushes do. False = the socket is gone; true does not say that anybody read it. */
  send(packet: WirePacket): boolean {
    return this.sendText(JSON.stringify(packet))
  }

  sendText(text: string): boolean {
    if (!this.open) return false
    this.ws.send(text)
    return true
  }

  /** Ends the connection without a close frame: 1006 on the other side. */
  terminate(): void {
    this.ws.terminate()
  }

  /** The process ends: what waits in the read loop is never done. */
  kill(): void {
    this.#killed = true
    this.ws.terminate()
  }

  #enqueue(task: () => unknown): void {
    this.#loop = this.#loop.then(async () => {
      if (!this.#killed) await task()
    })
  }
}
