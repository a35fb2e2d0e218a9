/** Structured logs: one JSON object a line, one line per message outcome, ids but never words, nothing secret. */
import { createRequire } from 'node:module'
import { pino, stdSerializers, type DestinationStream, type Logger, type LoggerOptions } from 'pino'
import { REDACTED, scrubber, type Scrub } from '../protocol/redact.js'

export type { Logger } from 'pino'
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

export interface LogOptions {
  readonly level: LogLevel
  /** Coloured lines for a terminal instead of JSON; needs `pino-pretty`, and is JSON where that is not installed. */
  readonly pretty: boolean
  /** Configured keys and tokens: replaced in every line, wherever they turn up. */
  readonly secrets?: readonly string[] | LogSecrets
  /** Where lines go; default standard output. */
  readonly destination?: DestinationStream
}

/** Names under which a secret could be logged by mistake, at the top and one level down. */
const SECRET_FIELDS = [
  'authorization', 'apiKey', 'api_key', 'apiKeys', 'key', 'keys', 'token', 'readToken', 'writeToken', 'password', 'secret', 'cookie',
  'context_token', 'reply_token', 'reply_ref', 'input', 'qr_code_text', 'qr_code_image',
]
/** Deeper causes say nothing more to a person. */
const MAX_CAUSES = 4

/** What no line may hold; others may come while the gateway runs. */
export class LogSecrets {
  #scrub: Scrub = scrubber([])
  #literals: readonly string[] = []

  constructor(secrets: readonly string[]) {
    this.replace(secrets)
  }

  replace(secrets: readonly string[]): void {
    this.#scrub = scrubber(secrets)
    this.#literals = secrets.filter((secret) => secret.length >= 4).flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)])
  }

  readonly scrub: Scrub = (text, maxLength) => this.#scrub(text, maxLength)

  hide(line: string): string {
    return this.#literals.reduce((text, literal) => text.replaceAll(literal, REDACTED), line)
  }
}

export function createLogger(options: LogOptions): Logger {
  const secrets = options.secrets instanceof LogSecrets ? options.secrets : new LogSecrets(options.secrets ?? [])
  const { scrub } = secrets
  const settings: LoggerOptions = {
    level: options.level,
    // Host name and process id are known to whoever collects the lines.
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`]), censor: REDACTED },
    serializers: { err: (error: unknown) => errorFields(error, scrub), error: (error: unknown) => errorFields(error, scrub) },
    hooks: { streamWrite: (line) => secrets.hide(line) },
  }
  const destination = options.pretty ? prettyStream(options.destination) : options.destination
  return destination === undefined ? pino(settings) : pino(settings, destination)
}

/** What of an error may be logged: platform and connector texts stand in messages, stacks and causes alike. */
function errorFields(error: unknown, scrub: Scrub, depth = 0): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: scrub(String(error)) }
  const { type, stack } = stdSerializers.err(error)
  const code: unknown = 'code' in error ? error.code : undefined
  return {
    type,
    message: scrub(error.message),
    ...((typeof code === 'string' || typeof code === 'number') && { code }),
    ...(stack !== undefined && { stack: framesOf(stack) }),
    ...(error.cause !== undefined && depth < MAX_CAUSES && { cause: errorFields(error.cause, scrub, depth + 1) }),
  }
}

/** The frames alone: the lines before them repeat messages, causes included. */
function framesOf(stack: string): string[] {
  return stack.split('\n').map((line) => line.trim()).filter((line) => line.startsWith('at '))
}

/** In the same thread and at once, so that lines stand in order with what others write to the terminal. */
function prettyStream(destination: DestinationStream | undefined): DestinationStream | undefined {
  try {
    const pretty = createRequire(import.meta.url)('pino-pretty') as (options: object) => DestinationStream
    return pretty({ sync: true, translateTime: 'SYS:HH:MM:ss.l', ...(destination !== undefined && { destination }) })
  } catch {
    return destination
  }
}
