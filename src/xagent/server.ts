/** The listener that xAgent dials: one uWebSockets.js app for HTTP and WebSocket of every route. */
import uws, { type TemplatedApp, type WebSocketBehavior } from 'uWebSockets.js'
import { BearerKeys } from '../ops/bearer-keys.js'
import type { Clock } from '../ops/clock.js'
import { tlsProblem } from '../ops/listen-problem.js'
import { DataPlane, type Admitted } from './data-plane.js'
import type { FileSource } from './file-download.js'
import type { RouteLookup } from './http-routes.js'
import { LinkTable } from './link-table.js'
import { bind } from './listen.js'
import type { ListenerEvent } from './listener-event.js'
import { RequestHandler } from './request-handler.js'

export interface XagentServerOptions {
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
  /** PEM files; null = no TLS. */
  readonly tls: { readonly cert: string; readonly key: string } | null
  /** Valid Bearer keys; none = open to everybody. */
  readonly apiKeys: readonly string[]
  readonly limits: {
    readonly maxFrameBytes: number
    readonly maxLinks: number
    readonly linksPerIp: number
    readonly helloTimeoutMs: number
    /** Per link; acks that match an open transmission do not count. */
    readonly packetsPerSecond: number
  }
  readonly clock: Clock
  /** Ids of links, and of packets that the listener itself sends. */
  readonly newId: () => string
  /** Asked anew for every request, so routes may come and go. */
  readonly route: RouteLookup
  /** Where files are; null = none are carried. */
  readonly files: FileSource | null
  readonly observe: (event: ListenerEvent) => void
}

export interface XagentServer {
  /** The port in use, also when the options said 0. */
  readonly port: number
  /** Links that are open now. */
  links(): number
  /** Takes other keys for what comes from now on. Throws ConfigError for an empty key. */
  replaceKeys(apiKeys: readonly string[]): void
  /** No new connection and no new link from now on; open links go on. */
  stopAccepting(): void
  /** Stops accepting, closes every link with this code and reason, spread over `spreadMs`, and frees the port. */
  close(code: number, reason: string, spreadMs?: number): Promise<void>
}

/** Seconds without a frame before a link counts as dead; pings in between are sent by the server, so an idle link lives. */
const IDLE_TIMEOUT_SECONDS = 120
const DEFAULT_SPREAD_MS = 1_000
/** How long the last close frames get to be read before connections are cut. */
const CLOSE_GRACE_MS = 250
const MAX_INT32 = 2 ** 31 - 1

/** Starts the listener. Throws ConfigError when the address or the TLS files cannot be used, or a key is empty. */
export async function startXagentServer(options: XagentServerOptions): Promise<XagentServer> {
  const { maxFrameBytes } = options.limits
  const keys = new BearerKeys(options.apiKeys)
  const links = new LinkTable(options.limits)
  // Above the largest frame, or a single one could never be sent.
  const maxBackpressureBytes = Math.min(4 * maxFrameBytes, MAX_INT32)
  const requests = new RequestHandler({ keys, links, route: options.route, files: options.files, observe: options.observe })
  const plane = new DataPlane({ ...options, links, maxBackpressureBytes })
  const app = createApp(options)
  app.ws<Admitted>('/*', { ...framing(maxFrameBytes, maxBackpressureBytes), ...handlers(plane, requests) })
  app.any('/*', (response, request) => requests.http(response, request))
  const bound = await bind(app, options.host, options.port)
  let listening = true

  function stopAccepting(): void {
    requests.stopAccepting()
    if (listening) uws.us_listen_socket_close(bound.socket)
    listening = false
  }

  async function close(code: number, reason: string, spreadMs = DEFAULT_SPREAD_MS): Promise<void> {
    stopAccepting()
    if (links.size > 0) {
      await links.closeAll(code, reason, spreadMs, options.clock)
      await new Promise<void>((resolve) => void options.clock.timer(CLOSE_GRACE_MS, resolve))
    }
    app.close()
  }

  return { port: bound.port, links: () => links.size, replaceKeys: (apiKeys) => keys.replace(apiKeys), stopAccepting, close }
}

function framing(maxFrameBytes: number, maxBackpressureBytes: number): WebSocketBehavior<Admitted> {
  return {
    compression: uws.DISABLED,
    // A larger frame kills the socket without a close frame, so frames just above the limit are let in and closed with 1009.
    maxPayloadLength: Math.min(2 * maxFrameBytes, MAX_INT32),
    maxBackpressure: maxBackpressureBytes,
    idleTimeout: IDLE_TIMEOUT_SECONDS,
    sendPingsAutomatically: true,
  }
}

function handlers(plane: DataPlane, requests: RequestHandler): WebSocketBehavior<Admitted> {
  return {
    upgrade: (response, request, context) => requests.upgrade(response, request, context),
    open: (socket) => plane.opened(socket),
    message: (socket, frame, isBinary) => plane.received(socket, frame, isBinary),
    drain: (socket) => plane.drained(socket),
    close: (socket) => plane.closed(socket),
  }
}

function createApp({ tls }: XagentServerOptions): TemplatedApp {
  if (tls === null) return uws.App()
  try {
    return uws.SSLApp({ cert_file_name: tls.cert, key_file_name: tls.key })
  } catch {
    throw tlsProblem(tls)
  }
}
