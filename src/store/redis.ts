/**
 * `redis://…` — one store for several instances. A record is a field of a hash per route and kind, with a sorted set beside it for
 * the order of its keys, so that a route is read without a look at any other. A batch is one script, its fence checked inside.
 */
import { randomUUID } from 'node:crypto'
import { RECORD_KINDS, type Change, type RecordKind } from '../core/record.js'
import { StoreError } from '../protocol/errors.js'
import type { RouteName } from '../protocol/ids.js'
import { checkKey } from './key.js'
import { DEFAULT_PAGE, type Fence, type ListOptions, type Page, type Store } from './port.js'
import { isProvablyGone, ownIdentity, type ProcessIdentity } from './process-identity.js'
import { textOf, valueOf } from './record-text.js'
import { RedisLink } from './redis-link.js'
import { ACQUIRE, COMMIT, LIST, RENEW } from './redis-scripts.js'

export interface RedisOptions {
  /** Before every key, so that several gateways can share a database. */
  readonly prefix: string
  /** A commit is durable when so many replicas have it, too. */
  readonly waitReplicas: number
  /** A record that cannot be read is left out of `list`, and told here; without it such a `list` rejects. */
  readonly onUnreadable?: (kind: RecordKind, key: string) => void
}

/** How long replicas are waited for, ms; everything behind it waits as well. */
const WAIT_MS = 1_000
/** Greater than every UTF-8 byte. */
const BEHIND_ALL = Buffer.from([0xff])

export class RedisStore implements Store {
  readonly #link: RedisLink
  readonly #owner = randomUUID()

  /** Begins to connect; a server that is away is met by the calls. Throws ConfigError for a URL that cannot be one. */
  constructor(url: string, private readonly options: RedisOptions) {
    this.#link = new RedisLink(url)
  }

  async acquire(route: RouteName, leaseMs: number): Promise<Fence> {
    const [, first] = await Promise.all([this.#link.send(['SADD', `${this.options.prefix}routes`, route]), this.#take(route, leaseMs, '')])
    if (first.number > 0) return { route, number: first.number }
    const [number, process] = (await this.#link.send(['HMGET', this.#key(route, 'lease'), 'number', 'process'])) as (string | null)[]
    const again = typeof number === 'string' && holderIsGone(process ?? null) ? await this.#take(route, leaseMs, number) : first
    if (again.number === 0) throw new StoreError('lease_held', `another instance holds the lease for ${again.heldMs} ms more`)
    return { route, number: again.number }
  }

  /** Number 0: another owner has it, and `gone` is not the number of its lease. */
  async #take(route: RouteName, leaseMs: number, gone: string): Promise<{ readonly number: number; readonly heldMs: number }> {
    const answer = await this.#link.run(ACQUIRE, [this.#key(route, 'lease')], [this.#owner, String(leaseMs), JSON.stringify(ownIdentity()), gone])
    const [number = 0, heldMs = 0] = answer as number[]
    return { number, heldMs }
  }

  async renew(fence: Fence, leaseMs: number): Promise<void> {
    await this.#link.run(RENEW, [this.#key(fence.route, 'lease')], [String(fence.number), String(leaseMs)])
  }

  async release(fence: Fence): Promise<void> {
    await this.renew(fence, 0).catch((error: unknown) => {
      if (!(error instanceof StoreError && error.code === 'fence_lost')) throw error
    })
  }

  get(route: RouteName, kind: RecordKind, key: string): Promise<unknown> {
    checkKey(key)
    return this.#link.send(['HGET', this.#key(route, kind), key]).then((text) => (typeof text === 'string' ? valueOf(text, kind, key) : undefined))
  }

  async list(route: RouteName, kind: RecordKind, { prefix = '', after, limit = DEFAULT_PAGE }: ListOptions = {}): Promise<Page> {
    const isAfter = after !== undefined && Buffer.compare(Buffer.from(after), Buffer.from(prefix)) >= 0
    const from = isAfter ? `(${after}` : prefix === '' ? '-' : `[${prefix}`
    const to = prefix === '' ? '+' : Buffer.concat([Buffer.from(`(${prefix}`), BEHIND_ALL])
    const found = (await this.#link.run(LIST, [this.#key(route, kind), this.#order(route, kind)], [from, to, String(limit + 1)])) as string[]
    const records: { key: string; value: unknown }[] = []
    for (let at = 0; at < found.length && at < 2 * limit; at += 2) {
      const [key, text] = [found[at] as string, found[at + 1] as string]
      const value = this.#readable(text, kind, key)
      if (value !== undefined) records.push({ key, value })
    }
    return { records, cursor: found.length > 2 * limit ? (found[2 * limit - 2] ?? null) : null }
  }

  async count(route: RouteName, kind: RecordKind): Promise<number> {
    return Number(await this.#link.send(['HLEN', this.#key(route, kind)]))
  }

  async commit(changes: readonly Change[], fence: Fence): Promise<void> {
    const kinds = [...new Set(changes.map(({ kind }) => kind))]
    const keys = [this.#key(fence.route, 'lease'), ...kinds.flatMap((kind) => [this.#key(fence.route, kind), this.#order(fence.route, kind)])]
    const args = changes.flatMap((change) => [String(kinds.indexOf(change.kind) + 1), change.op, change.key, textOf(change) ?? ''])
    const written = this.#link.run(COMMIT, keys, [String(fence.number), ...args])
    const { waitReplicas } = this.options
    if (waitReplicas === 0) return void (await written)
    // Right behind it on the connection: it is asked for this batch.
    const [, reached] = await Promise.all([written, this.#link.send(['WAIT', String(waitReplicas), String(WAIT_MS)])])
    if (Number(reached) < waitReplicas) throw new StoreError('store_unavailable', `only ${Number(reached)} of ${waitReplicas} replicas have it`)
  }

  async routes(): Promise<readonly RouteName[]> {
    const known = (await this.#link.send(['SMEMBERS', `${this.options.prefix}routes`])) as RouteName[]
    const counts = await Promise.all(known.map((route) => this.#link.send(['EXISTS', ...RECORD_KINDS.map((kind) => this.#key(route, kind))])))
    return known.filter((_, at) => Number(counts[at]) > 0).sort()
  }

  async probe(): Promise<void> {
    const key = `${this.options.prefix}probe`
    await Promise.all([this.#link.send(['SET', key, '', 'PX', '1000']), this.#link.send(['DEL', key])])
  }

  close(): Promise<void> {
    return this.#link.close()
  }

  /** The braces keep the keys of a route together in a cluster. */
  #key(route: RouteName, what: RecordKind | 'lease'): string {
    return `${this.options.prefix}{${route}}:${what}`
  }

  #order(route: RouteName, kind: RecordKind): string {
    return `${this.#key(route, kind)}:order`
  }

  #readable(text: string, kind: RecordKind, key: string): unknown {
    const { onUnreadable } = this.options
    if (onUnreadable === undefined) return valueOf(text, kind, key)
    try {
      return valueOf(text, kind, key)
    } catch {
      onUnreadable(kind, key)
      return undefined
    }
  }
}

/** A process of this machine that certainly ended is not waited for. */
function holderIsGone(text: string | null): boolean {
  try {
    return text !== null && isProvablyGone(JSON.parse(text) as ProcessIdentity)
  } catch {
    return false
  }
}
