/**
 * `lmdb:<folder>` — the embedded store. Every batch is one callback in a write transaction of lmdb's own batching, with its
 * fence checked inside, so that the check holds between processes too. A commit survives kill -9; `sync` also waits for the
 * disk.
 */
import { randomUUID } from 'node:crypto'
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { open, type Database, type RootDatabase } from 'lmdb'
import type { Change, RecordKind } from '../core/record.js'
import { StoreError } from '../protocol/errors.js'
import type { RouteName } from '../protocol/ids.js'
import { acquired, held, renewed, type LeaseRecord } from './lease.js'
import { DEFAULT_PAGE, type Fence, type ListOptions, type Page, type Store } from './port.js'
import { ownIdentity } from './process-identity.js'

export interface LmdbOptions {
  /** Wait for the disk before a commit is durable. */
  readonly sync: boolean
  /** Wall clock, Unix ms. */
  readonly now: () => number
  /** A record that cannot be read is left out of `list`, and told here. */
  readonly onUnreadable?: (kind: RecordKind, key: string) => void
}

/** A batch on its way to the disk, as readers must see it already. */
interface Overlaid {
  readonly text: string | null
  readonly commit: object
}

/** Sorts behind every key of a prefix: no UTF-8 text holds this byte order mark's successor. */
const END = '\u{10ffff}'

export class LmdbStore implements Store {
  readonly #db: RootDatabase<string, string>
  readonly #records: Database<string, string>
  readonly #leases: Database<LeaseRecord, string>
  readonly #overlay = new Map<string, Overlaid>()
  readonly #owner = randomUUID()
  readonly #writes = new Set<Promise<unknown>>()
  #closed = false

  /** Opens or makes the folder, private to its owner. Throws StoreError when it cannot. */
  constructor(folder: string, private readonly options: LmdbOptions) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      chmodSync(folder, 0o700)
      this.#db = open({ path: join(folder, 'gateway.mdb'), encoding: 'string', maxDbs: 4, noSubdir: true, permissionsMode: 0o600 } as Parameters<typeof open>[0]) as RootDatabase<string, string>
      this.#records = this.#db.openDB({ name: 'records', encoding: 'string' })
      this.#leases = this.#db.openDB({ name: 'leases', encoding: 'json' })
    } catch (error) {
      throw new StoreError('store_unavailable', `the store in ${folder} cannot be opened`, { cause: error })
    }
  }

  async acquire(route: RouteName, leaseMs: number): Promise<Fence> {
    const lease = await this.#writeLease(route, (current) =>
      acquired(current, { owner: this.#owner, expiresAt: this.options.now() + leaseMs, process: ownIdentity() }, this.options.now()))
    return { route, number: lease.number }
  }

  async renew(fence: Fence, leaseMs: number): Promise<void> {
    await this.#writeLease(fence.route, (current) => renewed(current, fence, this.options.now() + leaseMs))
  }

  async release(fence: Fence): Promise<void> {
    await this.#write(() => {
      const lease = this.#leases.get(fence.route)
      if (lease?.number === fence.number) this.#leases.putSync(fence.route, { ...lease, expiresAt: 0 })
    })
  }

  get(route: RouteName, kind: RecordKind, key: string): unknown {
    const full = fullKey(route, kind, key)
    const overlaid = this.#overlay.get(full)
    const text = overlaid === undefined ? this.#read(() => this.#records.get(full)) : overlaid.text
    return text === undefined || text === null ? undefined : parsed(text, kind, key)
  }

  async list(route: RouteName, kind: RecordKind, { prefix = '', after, limit = DEFAULT_PAGE }: ListOptions = {}): Promise<Page> {
    await this.#settled()
    const start = fullKey(route, kind, after === undefined || after < prefix ? prefix : after)
    const records: { key: string; value: unknown }[] = []
    let more = false
    this.#read(() => {
      for (const { key: full, value: text } of this.#records.getRange({ start, end: fullKey(route, kind, prefix) + END })) {
        const key = full.slice(fullKey(route, kind, '').length)
        if (key === after) continue
        if (records.length === limit) {
          more = true
          break
        }
        const value = this.#parsedOrSkipped(text, kind, key)
        if (value !== undefined) records.push({ key, value })
      }
    })
    return { records, cursor: more ? (records.at(-1)?.key ?? null) : null }
  }

  async count(route: RouteName, kind: RecordKind): Promise<number> {
    await this.#settled()
    return this.#read(() => this.#records.getKeysCount({ start: fullKey(route, kind, ''), end: fullKey(route, kind, '') + END }))
  }

  async commit(changes: readonly Change[], fence: Fence): Promise<void> {
    this.#usable()
    const commit = {}
    const texts = changes.map((change): [string, string | null] => [fullKey(fence.route, change.kind, change.key), change.op === 'put' ? JSON.stringify(change.value ?? null) : null])
    for (const [full, text] of texts) this.#overlay.set(full, { text, commit })
    try {
      await this.#write(() => {
        held(this.#leases.get(fence.route), fence)
        for (const [full, text] of texts) {
          if (text === null) this.#records.removeSync(full)
          else this.#records.putSync(full, text)
        }
      })
    } finally {
      for (const [full] of texts) if (this.#overlay.get(full)?.commit === commit) this.#overlay.delete(full)
    }
  }

  async routes(): Promise<readonly RouteName[]> {
    await this.#settled()
    const names: RouteName[] = []
    this.#read(() => {
      for (let start = ''; ; ) {
        const [first] = this.#records.getKeys({ start, limit: 1 })
        if (first === undefined) return
        const name = first.slice(0, first.indexOf('/')) as RouteName
        names.push(name)
        start = `${name}/${END}`
      }
    })
    return names
  }

  async probe(): Promise<void> {
    await this.#write(() => {
      this.#db.putSync('probe', String(this.options.now()))
    })
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#settled()
    await this.#db.flushed
    await this.#db.close()
  }

  async #writeLease(route: RouteName, change: (current: LeaseRecord | undefined) => LeaseRecord): Promise<LeaseRecord> {
    return this.#write(() => {
      const lease = change(this.#leases.get(route))
      this.#leases.putSync(route, lease)
      return lease
    })
  }

  /** One callback in a write transaction; a StoreError thrown before its first write leaves nothing behind. */
  async #write<T>(work: () => T): Promise<T> {
    this.#usable()
    const written = this.#db.transaction(work).then(async (value) => {
      if (this.options.sync) await this.#db.flushed
      return value
    })
    this.#writes.add(written)
    try {
      return await written
    } catch (error) {
      throw failure(error)
    } finally {
      this.#writes.delete(written)
    }
  }

  /** Lists and counts are for loading and sweeping: they wait for what is being written instead of merging it. */
  async #settled(): Promise<void> {
    while (this.#writes.size > 0) await Promise.allSettled([...this.#writes])
  }

  #read<T>(read: () => T): T {
    if (this.#closed) throw new StoreError('store_unavailable', 'the store is closed')
    try {
      return read()
    } catch (error) {
      throw failure(error)
    }
  }

  #parsedOrSkipped(text: string, kind: RecordKind, key: string): unknown {
    try {
      return parsed(text, kind, key)
    } catch {
      this.options.onUnreadable?.(kind, key)
      return undefined
    }
  }

  #usable(): void {
    if (this.#closed) throw new StoreError('store_unavailable', 'the store is closed')
  }
}

const fullKey = (route: RouteName, kind: RecordKind, key: string): string => `${route}/${kind}/${key}`

function parsed(text: string, kind: RecordKind, key: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new StoreError('record_unreadable', `the stored ${kind} "${key}" cannot be read`)
  }
}

function failure(error: unknown): StoreError {
  return error instanceof StoreError ? error : new StoreError('store_unavailable', 'the store failed', { cause: error })
}
