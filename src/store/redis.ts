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

/** How long the owner of a lease that ran out may renew it still. */
const GRACE_MS = 1_000

/** A lease of another owner. */
interface Held {
  /** Ms; below 0 when it has run out. */
  readonly runsMs: number
  readonly number: string
  readonly end: string
  readonly process: string | null
}

export class RedisStore implements Store {
  readonly #link: RedisLink
  readonly #owner = randomUUID()
  /** Leases of others that were seen to have run out, and when that was seen first. */
  readonly #over = new Map<RouteName, { readonly number: string; readonly end: string; readonly at: number }>()

  /** Begins to connect; a server that is away is met by the calls. Throws ConfigError for a URL that cannot be one. */
  constructor(url: string, private readonly options: RedisOptions) {
    this.#link = new RedisLink(url)
  }

  async acquire(route: RouteName, leaseMs: number): Promise<Fence> {
    const [, held] = await Promise.all([this.#link.send(['SADD', `${this.options.prefix}routes`, route]), this.#take(route, leaseMs, null)])
    if ('fence' in held) return held.fence
    const mayTake = this.#mayTake(route, held, leaseMs)
    const again = mayTake === null ? held : await this.#take(route, leaseMs, mayTake)
    if ('fence' in again) return again.fence
    throw new StoreError('lease_held', again.runsMs > 0 ? `another instance holds the lease for ${again.runsMs} ms more` : 'the lease of another instance has just run out: it may renew it still')
  }

  /** Takes a lease that is free, or this one of another owner. */
  async #take(route: RouteName, leaseMs: number, from: { readonly number: string; readonly end: string } | null): Promise<{ readonly fence: Fence } | Held> {
    const answer = await this.#link.run(ACQUIRE, [this.#key(route, 'lease')], [this.#owner, String(leaseMs), JSON.stringify(ownIdentity()), from?.number ?? '', from?.end ?? ''])
    const [taken, runsMs, number, end, process] = answer as [number, number, string, string, string | null]
    return taken > 0 ? { fence: { route, number: taken } } : { runsMs, number, end, process }
  }

  /**
   * A process of this machine that has ended is not waited for. A lease that ran out is taken when it was not renewed for a
   * moment more: while Redis itself was away nobody could, and what its owner holds unwritten would be lost.
   */
  #mayTake(route: RouteName, held: Held, leaseMs: number): { readonly number: string; readonly end: string } | null {
    if (holderIsGone(held.process)) return { number: held.number, end: '' }
    if (held.runsMs > 0) return null
    const seen = this.#over.get(route)
    if (seen?.number === held.number && seen.end === held.end) return performance.now() - seen.at >= Math.min(GRACE_MS, leaseMs / 2) ? seen : null
    this.#over.set(route, { number: held.number, end: held.end, at: performance.now() })
    return null
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
