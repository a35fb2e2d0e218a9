/** The admin listener (DESIGN §8): metrics for Prometheus, probes for whoever restarts or routes. */
import { readFile } from 'node:fs/promises'
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { BearerKeys } from './bearer-keys.js'
import { listenProblem, tlsProblem } from './listen-problem.js'

export interface AdminServerOptions {
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
  /** PEM files; null = no TLS. */
  readonly tls: { readonly cert: string; readonly key: string } | null
  /** Asked for by everything but the probes; null = none is asked for. */
  readonly readToken: string | null
  readonly metrics: { readonly contentType: string; scrape(): Promise<string> }
  /** Why the gateway is not ready, in words for a person; empty = ready. */
  readonly notReady: () => readonly string[] | Promise<readonly string[]>
  /** A request failed because of a bug or a metric that cannot be read. */
  readonly onError: (error: unknown) => void
}

export interface AdminServer {
  /** The port in use, also when the options said 0. */
  readonly port: number
  close(): Promise<void>
}

interface Answer {
  readonly status: number
  readonly type: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

interface Page {
  /** Probes never need a token: whoever restarts a process has none. */
  readonly needsToken: boolean
  readonly answer: (options: AdminServerOptions) => Answer | Promise<Answer>
}

const INDEX = `xagent-im-gateway, admin listener
/metrics   metrics in Prometheus' text format
/livez     200 while the process works
/readyz    200 when the gateway can take messages, else 503 with the reasons
`

const PAGES: ReadonlyMap<string, Page> = new Map<string, Page>([
  ['/', { needsToken: true, answer: () => text(200, INDEX) }],
  ['/metrics', { needsToken: true, answer: async ({ metrics }) => ({ status: 200, type: metrics.contentType, body: await metrics.scrape() }) }],
  ['/livez', { needsToken: false, answer: () => text(200, 'ok\n') }],
  ['/readyz', { needsToken: false, answer: readiness }],
])

/** Starts the admin listener. Throws ConfigError when address or TLS files cannot be used. */
export async function startAdminServer(options: AdminServerOptions): Promise<AdminServer> {
  const keys = new BearerKeys(options.readToken === null ? [] : [options.readToken])
  const server = await createServer(options, (request, response) => void serve(request, response, options, keys))
  await listen(server, options)
  return { port: (server.address() as AddressInfo).port, close: () => close(server) }
}

async function serve(request: IncomingMessage, response: ServerResponse, options: AdminServerOptions, keys: BearerKeys): Promise<void> {
  const answer = await answerTo(request, options, keys).catch((error: unknown) => {
    options.onError(error)
    return text(500, 'internal error\n')
  })
  // Not read: no page takes a body, and an unread one would be taken for the next request.
  if (request.method !== 'GET' && request.method !== 'HEAD') response.setHeader('connection', 'close')
  response.writeHead(answer.status, {
    'content-type': answer.type,
    'content-length': Buffer.byteLength(answer.body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...answer.headers,
  })
  response.end(request.method === 'HEAD' ? undefined : answer.body)
}

async function answerTo(request: IncomingMessage, options: AdminServerOptions, keys: BearerKeys): Promise<Answer> {
  const [path = ''] = (request.url ?? '').split('?', 1)
  const page = PAGES.get(path)
  if (page === undefined) return text(404, 'not found\n')
  if (request.method !== 'GET' && request.method !== 'HEAD') return { ...text(405, 'read only\n'), headers: { allow: 'GET, HEAD' } }
  if (page.needsToken && !keys.accepts(request.headers.authorization ?? '')) {
    return { ...text(401, 'unauthorized\n'), headers: { 'www-authenticate': 'Bearer' } }
  }
  return page.answer(options)
}

async function readiness({ notReady }: AdminServerOptions): Promise<Answer> {
  const reasons = await notReady()
  return { status: reasons.length === 0 ? 200 : 503, type: 'application/json', body: JSON.stringify({ ready: reasons.length === 0, reasons }) }
}

function text(status: number, body: string): Answer {
  return { status, type: 'text/plain; charset=utf-8', body }
}

async function createServer({ tls }: AdminServerOptions, onRequest: (request: IncomingMessage, response: ServerResponse) => void): Promise<Server> {
  if (tls === null) return createHttpServer(onRequest)
  try {
    const [cert, key] = await Promise.all([readFile(tls.cert), readFile(tls.key)])
    return createHttpsServer({ cert, key }, onRequest)
  } catch {
    throw tlsProblem(tls)
  }
}

function listen(server: Server, { host, port, onError }: AdminServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const refused = (error: NodeJS.ErrnoException): void => reject(listenProblem(host, port, error.code))
    server.once('error', refused)
    server.listen({ host, port, exclusive: true }, () => {
      server.off('error', refused).on('error', onError)
      resolve()
    })
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
