/**
 * The file side of a simulated connector (docs/legacy.md HTTP): bytes of what people sent, uploads of what goes to them, with
 * the habits of the real ones: wrong types, a cut-off above 16 MiB, references bound to a recipient, errors that tell too much.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { Busboy } from '@fastify/busboy'
import type { Dialect } from './connector-dialect.js'
import type { ConnectorEvents } from './connector-events.js'
import type { ConnectorKind } from './connector-kind.js'
import type { Occurrences } from './occurrences.js'
import { wireId } from './wire-packet.js'

const MAX_UPLOAD_BYTES = 16 * 2 ** 20
const LIFETIME_MS = 24 * 3_600_000

export interface SimMedia {
  readonly bytes: Buffer
  readonly contentType: string
  readonly filename: string
  /** Whom an upload was for; null = not said. */
  readonly recipient: string | null
}

/** How a download fails: a status and a body that must not get any further. */
export interface MediaFault {
  readonly status: number
  readonly body: string
}

/** The part of a connector's memory that files need. */
export interface MediaMemory {
  readonly media: Map<string, SimMedia>
  readonly mediaRefs: Set<string>
  readonly channels: ReadonlyMap<string, { readonly account: unknown }>
}

export class ConnectorMedia {
  /** Scripts downloads; null = they work. */
  fault: (ref: string) => MediaFault | null = () => null
  /** Scripts uploads: the status that refuses one, or null. The answer waits for it. */
  refuse: (upload: { filename: string; bytes: Buffer }) => number | null | Promise<number | null> = () => null

  constructor(
    private readonly kind: Pick<ConnectorKind, 'mediaRefPrefix'>,
    private readonly dialect: Dialect,
    private readonly memory: MediaMemory,
    private readonly events: Occurrences<ConnectorEvents>,
    private readonly now: () => number,
  ) {}

  /** Answers a request for a file; false when it is for something else. `path` is what stands behind the prefix. */
  handle(path: string, request: IncomingMessage, response: ServerResponse, authorized: () => boolean): boolean {
    const base = this.dialect === '1.0' ? '/media' : '/files'
    if (path === `${base}/uploads` && request.method === 'POST') this.#upload(request, response, authorized)
    else if (path.startsWith(`${base}/refs/`) && (request.method === 'GET' || request.method === 'HEAD')) this.#download(decodeURIComponent(path.slice(base.length + 6)), response)
    else return false
    return true
  }

  #download(ref: string, response: ServerResponse): void {
    const fault = this.fault(ref)
    const media = this.memory.media.get(ref)
    if (fault !== null) return void response.writeHead(fault.status, { 'content-type': 'text/plain' }).end(fault.body)
    if (media === undefined) return void response.writeHead(404, { 'content-type': 'text/plain' }).end('404 page not found\n')
    response.writeHead(200, { 'content-type': media.contentType, 'content-length': media.bytes.length })
    Readable.from([media.bytes]).pipe(response)
  }

  #upload(request: IncomingMessage, response: ServerResponse, authorized: () => boolean): void {
    // Cut off before the key is checked; the client sees a reset rather than the answer.
    if (Number(request.headers['content-length']) > MAX_UPLOAD_BYTES) {
      response.writeHead(413).end('{"error":"too large"}')
      return void request.socket.destroySoon()
    }
    if (!authorized()) return void response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"unauthorized"}')
    const channelId = String(request.headers['x-xagent-connector-channel-id'] ?? '')
    if (!this.memory.channels.get(channelId)?.account) return void response.writeHead(403).end('{"error":"channel is not bound"}')
    const fields: Record<string, string> = {}
    const chunks: Buffer[] = []
    let filename = ''
    const parser = new Busboy({ headers: { ...request.headers, 'content-type': request.headers['content-type'] ?? '' } })
    parser.on('field', (name, value) => { fields[name] = value })
    parser.on('file', (_name, stream, name) => {
      filename = name ?? ''
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    })
    parser.on('error', () => response.writeHead(400).end('{"error":"bad multipart"}'))
    parser.on('finish', () => void this.#taken(channelId, filename, Buffer.concat(chunks), fields, response))
    request.pipe(parser)
  }

  async #taken(channelId: string, filename: string, bytes: Buffer, fields: Readonly<Record<string, string>>, response: ServerResponse): Promise<void> {
    const refused = filename === '' ? 400 : await this.refuse({ filename, bytes })
    if (refused !== null) return void response.writeHead(refused).end('{"error":"refused"}')
    const ref = wireId(this.kind.mediaRefPrefix, 12)
    this.memory.media.set(ref, { bytes, contentType: 'application/octet-stream', filename, recipient: fields['recipient_ref'] ?? null })
    this.memory.mediaRefs.add(ref)
    this.events.record('upload', { channelId, ref, filename, bytes, fields })
    const common = { filename, byte_size: bytes.length, expires_at: this.now() + LIFETIME_MS }
    const answer = this.dialect === '1.0' ? { media_ref: ref, media_type: 'file', ...common } : { file_ref: ref, file_type: 'file', ...common }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }
}
