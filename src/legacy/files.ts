/**
 * A connector's file side: downloads of what people sent, uploads of what goes to them (docs/legacy.md HTTP). Streams both
 * ways; no body of a failed answer is ever passed on, since it can hold a token.
 */
import type { Readable } from 'node:stream'
import { Agent, request, type Dispatcher } from 'undici'
import type { Clock } from '../ops/clock.js'
import { err, ok, type Result } from '../protocol/errors.js'
import type { LegacyChannelId } from '../protocol/ids.js'
import { isObject } from '../protocol/packet.js'
import { underBase } from './base-url.js'
import { fileLocation, publicLookup, type FileHosts } from './file-hosts.js'
import { multipart } from './multipart.js'
import type { LegacyEndpoint } from './socket.js'

/** Why a transfer failed; `retry`: it may go better a moment later. */
export interface TransferFailure {
  readonly code: string
  readonly retry: boolean
}

export interface Download {
  readonly body: AsyncIterable<Uint8Array>
}

export interface Upload {
  readonly body: Readable
  readonly byteSize: number
  readonly filename: string
  readonly mimeType: string
}

export interface LegacyFilesOptions {
  readonly endpoint: Omit<LegacyEndpoint, 'maxFrameBytes'>
  readonly hosts: FileHosts
  readonly clock: Clock
  /** For connecting, and between two pieces of a body. */
  readonly stepTimeoutMs?: number
}

/** 1.0 connectors close idle connections after 5 s; one that is about to be closed must not be reused. */
const KEEP_ALIVE_MS = 3_000
const MAX_ANSWER_BYTES = 65_536
/** Statuses that say that the file, or the channel, will not be taken however often it is tried. */
const PERMANENT: readonly number[] = [400, 401, 403, 404, 405, 411, 413, 415, 422]

export class LegacyFiles {
  readonly #own: Agent
  readonly #foreign: Agent

  constructor(private readonly options: LegacyFilesOptions) {
    const timeout = options.stepTimeoutMs ?? 10_000
    const { ca } = options.endpoint
    const common = { headersTimeout: timeout, bodyTimeout: timeout, keepAliveTimeout: KEEP_ALIVE_MS, keepAliveMaxTimeout: KEEP_ALIVE_MS }
    this.#own = new Agent({ ...common, connect: { timeout, ...(ca !== null && { ca }) } })
    this.#foreign = new Agent({ ...common, connect: { timeout, lookup: publicLookup(options.hosts) } })
  }

  /** Whether a URL is the connector's own, so that its key goes there and nobody else can fetch it. */
  isOwn(given: string): boolean {
    const location = fileLocation(given, this.options.endpoint.baseUrl, this.options.hosts)
    return !('refused' in location) && location.own
  }

  /** Begins a download. Redirects are refusals: nobody is sent anywhere else. */
  async download(given: string, signal: AbortSignal): Promise<Result<Download, TransferFailure>> {
    const { baseUrl, apiKey } = this.options.endpoint
    const location = fileLocation(given, baseUrl, this.options.hosts)
    if ('refused' in location) return err({ code: location.refused, retry: false })
    try {
      const response = await request(location.url, {
        dispatcher: location.own ? this.#own : this.#foreign, signal, headers: location.own && apiKey !== null ? { authorization: `Bearer ${apiKey}` } : {},
      })
      if (response.statusCode === 200) return ok({ body: response.body })
      discard(response)
      // A platform behind the connector may answer again a moment later; a reference that is gone will not.
      return err({ code: `http_${response.statusCode}`, retry: ![403, 404, 410].includes(response.statusCode) })
    } catch (error) {
      return err(failureOf(error))
    }
  }

  /** Uploads a file for a channel and answers the connector's reference of it. */
  async upload(path: '/media/uploads' | '/files/uploads', channelId: LegacyChannelId, file: Upload, fields: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Result<string, TransferFailure>> {
    const { baseUrl, apiKey } = this.options.endpoint
    const body = multipart(file, fields)
    try {
      const response = await request(underBase(baseUrl, path), {
        method: 'POST', dispatcher: this.#own, signal, body: body.stream,
        headers: {
          'content-type': body.contentType, 'content-length': String(body.byteSize), 'x-xagent-connector-channel-id': channelId,
          ...(apiKey !== null && { authorization: `Bearer ${apiKey}` }),
        },
      })
      if (response.statusCode === 200 || response.statusCode === 201) return await referenceIn(response)
      discard(response)
      return err({ code: `http_${response.statusCode}`, retry: !PERMANENT.includes(response.statusCode) })
    } catch (error) {
      return err(failureOf(error))
    } finally {
      file.body.destroy()
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#own.destroy(), this.#foreign.destroy()])
  }
}

async function referenceIn(response: Dispatcher.ResponseData): Promise<Result<string, TransferFailure>> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MAX_ANSWER_BYTES) break
    chunks.push(chunk)
  }
  try {
    const answer: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    const ref = isObject(answer) ? (answer['file_ref'] ?? answer['media_ref']) : undefined
    if (typeof ref === 'string' && ref !== '') return ok(ref)
  } catch {
    // Told below: what the connector answered is nobody's business.
  }
  return err({ code: 'upload_answer_invalid', retry: false })
}

function discard(response: Dispatcher.ResponseData): void {
  response.body.on('error', () => {}).destroy()
}

function failureOf(error: unknown): TransferFailure {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown_error'
  return { code, retry: code !== 'EPRIVATE' }
}
