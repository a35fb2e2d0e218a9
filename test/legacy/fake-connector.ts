/** A small scripted WebSocket server in a legacy connector's place. It answers hello, ping and opens; the test does the rest. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer, type WebSocket } from 'ws'
import { EventLog } from './event-log.js'

export interface WirePacket {
  schema: string
  packet_id: string
  request_id?: string
  reply_to?: string
  connector_channel_id?: string
  type: string
  payload?: Record<string, unknown>
  error?: { code: string; message?: string }
}

export interface Received {
  readonly socket: WebSocket
  readonly packet: WirePacket
}

/** Handles a packet itself (true), or leaves it to the standard answer (false). */
export type Script = (received: Received, connector: FakeConnector) => boolean

export interface FakeOptions {
  readonly script?: Script
  /** Answers the upgrade with this status instead. */
  readonly upgradeStatus?: number
  readonly helloAck?: Record<string, unknown>
  readonly port?: number
}

interface Teardown {
  teardown(end: () => unknown): void
}

let ids = 0

export class FakeConnector {
  readonly received = new EventLog<Received>()
  /** Every upgrade's headers, also of refused ones. */
  readonly upgrades = new EventLog<Record<string, unknown>>()
  readonly sockets: WebSocket[] = []
  options: FakeOptions
  readonly #server: Server
  readonly #sockets = new WebSocketServer({ noServer: true })

  private constructor(options: FakeOptions) {
    this.options = options
    this.#server = createServer((_request, response) => response.writeHead(404).end())
    this.#server.on('upgrade', (request, socket, head) => {
      this.upgrades.add(request.headers)
      const { upgradeStatus } = this.options
      if (upgradeStatus !== undefined) {
        socket.on('error', () => {})
        const location = upgradeStatus >= 300 && upgradeStatus < 400 ? `location: http://${request.headers.host}/elsewhere\r\n` : ''
        socket.end(`HTTP/1.1 ${upgradeStatus} Refused\r\n${location}content-length: 0\r\nconnection: close\r\n\r\n`)
        return
      }
      this.#sockets.handleUpgrade(request, socket, head, (ws) => this.#opened(ws))
    })
  }

  static async start(t: Teardown, options: FakeOptions = {}): Promise<FakeConnector> {
    const connector = new FakeConnector(options)
    await new Promise<void>((resolve) => connector.#server.listen(options.port ?? 0, '127.0.0.1', resolve))
    t.teardown(() => connector.stop())
    return connector
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** The one socket or, of several, the one that said hello at this place in the order. */
  socket(index = 0): WebSocket {
    const socket = this.sockets[index]
    if (socket === undefined) throw new Error(`no socket ${index}`)
    return socket
  }

  /** Every socket dies as with its process: no close frame. */
  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.terminate()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** The packets of a type that have come so far. */
  packets(type: string): WirePacket[] {
    return this.received.all.filter(({ packet }) => packet.type === type).map(({ packet }) => packet)
  }

  /** Waits for the nth packet of a type, from 1. */
  async packet(type: string, nth = 1): Promise<Received> {
    return this.received.waitFor(({ packet }) => packet.type === type, nth)
  }

  #opened(ws: WebSocket): void {
    this.sockets.push(ws)
    ws.on('error', () => {})
    ws.on('message', (data: Buffer) => {
      const received = { socket: ws, packet: JSON.parse(data.toString()) as WirePacket }
      if (this.options.script?.(received, this) !== true) this.#standard(received)
      this.received.add(received)
    })
  }

  #standard({ socket, packet }: Received): void {
    if (packet.type === 'connector.hello') {
      const { connector_card_id } = packet.payload ?? {}
      answer(socket, packet, { payload: { connector_card_id, connector_id: 'conn_9', ...this.options.helloAck } })
    } else if (packet.type === 'ping') {
      answer(socket, packet, { type: 'pong' })
    } else if (packet.type === 'channel.open') {
      answer(socket, packet, { payload: { connector_channel_id: 'cch_1' } })
    }
  }
}

/** Sends any packet; envelope fields may be given or replaced. */
export function send(socket: WebSocket, packet: Partial<WirePacket> & { type: string }): void {
  ids += 1
  socket.send(JSON.stringify({ schema: 'xagent.connector.packet/v1', packet_id: `pkt_fake_${ids}`, payload: {}, ...packet }))
}

/** Answers a request with its `.ack`, unless `change` says otherwise. */
export function answer(socket: WebSocket, packet: WirePacket, change: Partial<WirePacket> = {}): void {
  send(socket, {
    type: `${packet.type}.ack`,
    reply_to: packet.packet_id,
    ...(packet.request_id !== undefined && { request_id: packet.request_id }),
    ...(packet.connector_channel_id !== undefined && { connector_channel_id: packet.connector_channel_id }),
    ...change,
  })
}
