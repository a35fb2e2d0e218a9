/**
 * One connection to Redis. What is sent on it is done in order, so that a read sees every write that was sent before. Nothing
 * waits for a server that is away: calls fail at once, and whoever needs them tries again (DESIGN §7).
 */
import { createClient } from '@keyv/redis'
import { ConfigError, StoreError } from '../protocol/errors.js'
import { FENCE_LOST, SCRIPTS, type Script } from './redis-scripts.js'

const CONNECT_TIMEOUT_MS = 5_000
/** A server that answers nothing for so long though it was asked is gone, whatever its socket says. */
const SILENT_CHECKS = 5
const CHECK_MS = 1_000
const MAX_RECONNECT_MS = 1_000

type Client = ReturnType<typeof createClient>
export type Argument = string | Buffer

export class RedisLink {
  #client: Client
  /** Over once the first attempt has ended, whatever it gave: who starts first may wait that long. */
  #first: Promise<void> | null
  #outstanding = 0
  #answered = 0
  #watch: NodeJS.Timeout | null = null
  #closed: Promise<void> | null = null

  /** Begins to connect. Throws ConfigError for a URL that is none of Redis. */
  constructor(private readonly url: string) {
    this.#client = this.#connected()
    this.#first = new Promise<void>((resolve) => {
      this.#client.once('ready', resolve)
      this.#client.once('error', () => resolve())
    }).then(() => { this.#first = null })
  }

  /** Sends one command. Rejects with StoreError `store_unavailable` when it was not answered: it may have been done. */
  send(command: readonly Argument[]): Promise<unknown> {
    this.checkOpen()
    return this.#first === null ? this.#send(command) : this.#first.then(() => this.#send(command))
  }

  run({ sha }: Script, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    return this.send(['EVALSHA', sha, String(keys.length), ...keys, ...args])
  }

  checkOpen(): void {
    if (this.#closed !== null) throw new StoreError('store_unavailable', 'the store is closed')
  }

  /** Waits for what was sent, then disconnects. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    await this.#first
    if (this.#watch !== null) clearInterval(this.#watch)
    // A server that is away is not waited for.
    if (this.#client.isReady) await this.#client.close().catch(() => {})
    else destroyed(this.#client)
  }

  async #send(command: readonly Argument[]): Promise<unknown> {
    this.#outstanding += 1
    this.#watchSilence()
    try {
      return await this.#client.sendCommand([...command])
    } catch (error) {
      // Somebody has flushed the server's scripts: whoever tries again finds them.
      if (saidBy(error).startsWith('NOSCRIPT')) loadScripts(this.#client)
      throw storeError(error)
    } finally {
      this.#outstanding -= 1
      this.#answered += 1
    }
  }

  #connected(): Client {
    const client = madeClient(this.url)
    // Before anything else on this connection: a script must be known when it is called.
    client.on('ready', () => loadScripts(client))
    // Each call that fails says so itself; the client reconnects by itself.
    client.on('error', () => {})
    client.connect().catch(() => {})
    return client
  }

  /** A half-open connection is noticed by its silence, and replaced. */
  #watchSilence(): void {
    if (this.#watch !== null) return
    let seen = this.#answered
    let silent = 0
    this.#watch = setInterval(() => {
      if (this.#outstanding === 0) return this.#endWatch()
      silent = this.#answered === seen ? silent + 1 : 0
      seen = this.#answered
      if (silent < SILENT_CHECKS) return
      silent = 0
      destroyed(this.#client)
      this.#client = this.#connected()
    }, CHECK_MS)
    this.#watch.unref()
  }

  #endWatch(): void {
    if (this.#watch !== null) clearInterval(this.#watch)
    this.#watch = null
  }
}

function madeClient(url: string): Client {
  try {
    return createClient({
      url,
      disableOfflineQueue: true,
      socket: { connectTimeout: CONNECT_TIMEOUT_MS, keepAlive: true, noDelay: true, reconnectStrategy: (attempt: number) => Math.min(MAX_RECONNECT_MS, 50 * 2 ** attempt) },
    })
  } catch {
    // What it says may hold the password.
    throw new ConfigError(['store: this is no URL of Redis; must be redis://[user:password@]host[:port][/database], or rediss:// for TLS'])
  }
}

/** What waits on it fails; one that has ended already says so by an error. */
function destroyed(client: Client): void {
  try {
    client.destroy()
  } catch {
    // It is what was wanted.
  }
}

function loadScripts(client: Client): void {
  for (const { text } of SCRIPTS) client.sendCommand(['SCRIPT', 'LOAD', text]).catch(() => {})
}

const saidBy = (error: unknown): string => (error instanceof Error ? error.message : String(error))

function storeError(error: unknown): StoreError {
  return saidBy(error).startsWith(FENCE_LOST) ? new StoreError('fence_lost', 'another instance owns the route') : new StoreError('store_unavailable', 'Redis failed, or cannot be reached', { cause: error })
}
