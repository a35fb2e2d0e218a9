/** One WebSocket of a simulated xAgent, with the answers that it waits for. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import WebSocket from 'ws'
import { readWirePacket, wirePacket, type PacketFields, type WirePacket } from './wire-packet.js'

const SUBPROTOCOL = 'xagent.connector.packet.v1'
const ANSWER_TIMEOUT_MS = 60_000

export interface LinkOptions {
  readonly url: string
  /** Null = no Authorization header. */
  readonly apiKey: string | null
  readonly onPacket: (packet: WirePacket) => void
  /** Wall clock, Unix ms. */
  readonly now: () => number
}

interface Waiting {
  readonly resolve: (packet: WirePacket) => void
  readonly reject: (error: Error) => void
}

export class XagentLink {
  readonly closed: Promise<{ code: number; reason: string }>
  readonly #ws: WebSocket
  /** By `request_id`, and by the `packet_id` that an answer repeats as `reply_to`. */
  readonly #waiting = new Map<string, Waiting>()

  private constructor(ws: WebSocket, onPacket: LinkOptions['onPacket'], private readonly now: () => number) {
    this.#ws = ws
    this.closed = new Promise((resolve) => {
      ws.on('close', (code, reason) => {
        for (const { reject } of [...this.#waiting.values()]) reject(new Error(`the link was closed with ${code} before the answer`))
        resolve({ code, reason: reason.toString() })
      })
    })
    // An error is always followed by the close.
    ws.on('error', () => undefined)
    ws.on('message', (data) => {
      const packet = readWirePacket((data as Buffer).toString('utf8'))
      if (packet === null) return
      onPacket(packet)
      this.#settle(packet)
    })
  }

  /** Dials; rejects with the HTTP status when the upgrade is refused, or with why there is no connection. */
  static async dial({ url, apiKey, onPacket, now }: LinkOptions): Promise<XagentLink> {
    const ws = new WebSocket(url, [SUBPROTOCOL], {
      perMessageDeflate: false, headers: apiKey === null ? {} : { authorization: `Bearer ${apiKey}` },
    })
    const link = new XagentLink(ws, onPacket, now)
    ws.once('unexpected-response', (_request: unknown, response: IncomingMessage) => {
      ws.emit('error', new Error(`the upgrade was refused with ${response.statusCode ?? 0}`))
      ws.terminate()
    })
    await once(ws, 'open')
    return link
  }

  get open(): boolean {
    return this.#ws.readyState === WebSocket.OPEN
  }

  sendText(text: string): void {
    this.#ws.send(text)
  }

  sendBinary(bytes: Uint8Array): void {
    this.#ws.send(bytes)
  }

  /** Sends a packet and answers it as sent. */
  send(fields: PacketFields): WirePacket {
    const packet = wirePacket(fields, this.now())
    this.sendText(JSON.stringify(packet))
    return packet
  }

  /**
   * Sends a packet and resolves with what answers it, an error too. Rejects when the link is closed first, or after a minute;
   * a rejection that nobody awaits is no failure.
   */
  ask(fields: PacketFields): Promise<WirePacket> {
    const packet = this.send(fields)
    const key = packet.request_id ?? packet.packet_id
    let timer: NodeJS.Timeout | undefined
    const answer = new Promise<WirePacket>((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`${packet.type} was not answered`)), ANSWER_TIMEOUT_MS)
      this.#waiting.set(key, { resolve, reject })
    }).finally(() => {
      clearTimeout(timer)
      this.#waiting.delete(key)
    })
    answer.catch(() => undefined)
    return answer
  }

  /** A ping of the WebSocket level; resolves with its pong. */
  async ping(): Promise<void> {
    this.#ws.ping()
    await once(this.#ws, 'pong')
  }

  /** Closes politely; resolves when the other side has answered. */
  async close(code = 1000): Promise<void> {
    this.#ws.close(code)
    await this.closed
  }

  /** Cuts the connection. */
  async terminate(): Promise<void> {
    this.#ws.terminate()
    await this.closed
  }

  #settle(packet: WirePacket): void {
    for (const key of [packet.request_id, packet.reply_to]) if (key !== undefined) this.#waiting.get(key)?.resolve(packet)
  }
}
