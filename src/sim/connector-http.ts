/** The HTTP side of a simulated connector: its three documents and the upgrade, behind a path prefix and a key. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { WebSocketServer, type WebSocket } from 'ws'
import type { JsonObject } from '../protocol/packet.js'
import type { ConnectorEvents } from './connector-events.js'
import type { Occurrences } from './occurrences.js'

const SUBPROTOCOL = 'xagent.connector.packet.v1'
const UNAUTHORIZED = JSON.stringify({ error: 'unauthorized' })

export interface HttpParts {
  readonly host: string
  /** 0 = any free port, the same one again after a restart. */
  readonly port: number
  /** Path before every endpoint, without a slash at its end. */
  readonly prefix: string
  /** Null = no key is asked for. */
  readonly apiKey: string | null
  readonly card: () => JsonObject
  readonly skill: () => string
  readonly health: () => JsonObject
  readonly onSocket: (ws: WebSocket) => void
  /** Answers requests for files; false when the path is for something else. */
  readonly media?: (path: string, request: IncomingMessage, response: ServerResponse, authorized: () => boolean) => boolean
  readonly events: Occurrences<ConnectorEvents>
}

export class ConnectorHttp {
  #server: Server | null = null
  #port: number
  // No read limit and no pong of its own: the pong is the read loop's.
  readonly #sockets = new WebSocketServer({
    noServer: true, autoPong: false, maxPayload: 0, handleProtocols: (offered) => (offered.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
  })

  constructor(private readonly parts: HttpParts) {
    this.#port = parts.port
  }

  get url(): string {
    const { host, prefix } = this.parts
    return `http://${host.includes(':') ? `[${host}]` : host}:${this.#port}${prefix}`
  }

  get listening(): boolean {
    return this.#server !== null
  }

  /** Opens the port; rejects when it is taken. */
  async start(): Promise<void> {
    const server = createServer((request, response) => this.#answer(request, response))
    server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket as Socket, head))
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(this.#port, this.parts.host, resolve)
    })
    this.#port = (server.address() as AddressInfo).port
    this.#server = server
  }

  /** Closes the port and every plain HTTP connection; sockets are their owner's to end. */
  async stop(): Promise<void> {
    const server = this.#server
    if (server === null) return
    this.#server = null
    await new Promise((resolve) => {
      server.close(resolve)
      server.closeAllConnections()
    })
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    response.on('finish', () => this.#record(request, response.statusCode))
    if (this.parts.media?.(this.#endpoint(request), request, response, () => this.#authorized(request)) === true) return
    const [status, contentType, body] = this.#content(request)
    response.writeHead(status, { 'content-type': contentType }).end(body)
  }

  #content(request: IncomingMessage): [status: number, contentType: string, body: string] {
    const { parts } = this
    switch (request.method === 'GET' ? this.#endpoint(request) : '') {
      case '/connector-card.json': return [200, 'application/json', JSON.stringify(parts.card())]
      case '/skill.md': return [200, 'text/markdown; charset=utf-8', parts.skill()]
      case '/health':
        if (!this.#authorized(request)) return [401, 'application/json', UNAUTHORIZED]
        return [200, 'application/json', JSON.stringify(parts.health())]
      default: return [404, 'text/plain; charset=utf-8', '404 page not found\n']
    }
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    socket.on('error', () => socket.destroy())
    if (this.#endpoint(request) !== '/ws') return this.#refuseUpgrade(request, socket, 404, '{"error":"not found"}')
    if (!this.#authorized(request)) return this.#refuseUpgrade(request, socket, 401, UNAUTHORIZED)
    this.#sockets.handleUpgrade(request, socket, head, (ws) => this.parts.onSocket(ws))
  }

  #refuseUpgrade(request: IncomingMessage, socket: Socket, status: number, body: string): void {
    const reason = status === 401 ? 'Unauthorized' : 'Not Found'
    const headers = `content-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close`
    socket.end(`HTTP/1.1 ${status} ${reason}\r\n${headers}\r\n\r\n${body}`)
    this.#record(request, status)
  }

  /** The path behind the prefix; empty when the request is not for this connector. */
  #endpoint(request: IncomingMessage): string {
    const { pathname } = new URL(request.url ?? '/', 'http://connector.invalid')
    return pathname.startsWith(this.parts.prefix) ? pathname.slice(this.parts.prefix.length) : ''
  }

  #authorized(request: IncomingMessage): boolean {
    return this.parts.apiKey === null || request.headers.authorization === `Bearer ${this.parts.apiKey}`
  }

  #record(request: IncomingMessage, status: number): void {
    this.parts.events.record('http', { method: request.method ?? '', path: request.url ?? '', status })
  }
}
