/**
 * A connector's HTTP side: Card, Skill, health. Bodies are bounded, redirects are refusals (the key goes nowhere else), and
 * no error tells anything of a body, which can hold a token.
 */
import { Agent, request, type Dispatcher } from 'undici'
import type { Clock } from '../ops/clock.js'
import { err, ok, type Result } from '../protocol/errors.js'
import { isObject, type JsonObject } from '../protocol/packet.js'
import { underBase } from './base-url.js'
import type { LegacyHttp } from './port.js'
import type { LegacyEndpoint } from './socket.js'

export type LegacyHttpErrorCode =
  | 'connector_unreachable'
  | 'connector_timeout'
  | 'connector_unauthorized'
  | 'connector_http_status'
  | 'connector_body_too_large'
  | 'connector_body_invalid'

export interface LegacyHttpOptions {
  readonly endpoint: Omit<LegacyEndpoint, 'maxFrameBytes'>
  readonly clock: Clock
  /** For connecting, for the headers, and between two pieces of a body. */
  readonly stepTimeoutMs?: number
  /** For a whole answer: a body that trickles never runs into the other limit. */
  readonly totalTimeoutMs?: number
}

const MAX_CARD_BYTES = 1_048_576
const MAX_SKILL_BYTES = 262_144
const MAX_HEALTH_BYTES = 65_536
/** 1.0 connectors close idle connections after 5 s; one that is about to be closed must not be reused. */
const KEEP_ALIVE_MS = 3_000

type Answer = { readonly status: number; readonly text: string }

export class UndiciLegacyHttp implements LegacyHttp {
  readonly #agent: Agent

  constructor(private readonly options: LegacyHttpOptions) {
    const timeoutMs = options.stepTimeoutMs ?? 10_000
    const { ca } = options.endpoint
    this.#agent = new Agent({
      connect: { timeout: timeoutMs, ...(ca !== null && { ca }) },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
    })
  }

  async card(): Promise<Result<JsonObject>> {
    return this.#json('/connector-card.json', MAX_CARD_BYTES)
  }

  async skill(): Promise<Result<string | null>> {
    const answer = await this.#get('/skill.md', MAX_SKILL_BYTES)
    if (!answer.ok) return answer
    const { status, text } = answer.value
    if (status === 204 || status === 404) return ok(null)
    return status === 200 ? ok(text) : unexpected(status)
  }

  async health(): Promise<Result<JsonObject>> {
    return this.#json('/health', MAX_HEALTH_BYTES)
  }

  async close(): Promise<void> {
    await this.#agent.destroy()
  }

  async #json(path: `/${string}`, maxBytes: number): Promise<Result<JsonObject>> {
    const answer = await this.#get(path, maxBytes)
    if (!answer.ok) return answer
    if (answer.value.status !== 200) return unexpected(answer.value.status)
    const body = parsed(answer.value.text)
    return isObject(body) ? ok(body) : failed('connector_body_invalid', 'the body is not a JSON object')
  }

  async #get(path: `/${string}`, maxBytes: number): Promise<Result<Answer>> {
    const { endpoint, clock, totalTimeoutMs = 20_000 } = this.options
    const abort = new AbortController()
    const cancel = clock.timer(totalTimeoutMs, () => abort.abort())
    try {
      const response = await request(underBase(endpoint.baseUrl, path), {
        dispatcher: this.#agent,
        signal: abort.signal,
        headers: endpoint.apiKey === null ? {} : { authorization: `Bearer ${endpoint.apiKey}` },
      })
      if (response.statusCode !== 200) {
        response.body.on('error', () => {}).destroy()
        return ok({ status: response.statusCode, text: '' })
      }
      return await bodyOf(response, maxBytes)
    } catch (error) {
      return abort.signal.aborted ? failed('connector_timeout', `no whole answer within ${totalTimeoutMs} ms`) : failure(error)
    } finally {
      cancel()
    }
  }
}

async function bodyOf(response: Dispatcher.ResponseData, maxBytes: number): Promise<Result<Answer>> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxBytes) return failed('connector_body_too_large', `the body is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  try {
    return ok({ status: response.statusCode, text: new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)) })
  } catch {
    return failed('connector_body_invalid', 'the body is not UTF-8')
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function unexpected(status: number): Result<never> {
  return failed(status === 401 || status === 403 ? 'connector_unauthorized' : 'connector_http_status', `HTTP ${status}`)
}

function failure(error: unknown): Result<never> {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown error'
  return code.endsWith('_TIMEOUT') ? failed('connector_timeout', code) : failed('connector_unreachable', code)
}

function failed(code: LegacyHttpErrorCode, message: string): Result<never> {
  return err({ code, message })
}
