/**
 * `lmdb:<folder>` — the embedded store. Every batch is one callback in a write transaction of lmdb's own batching, with its
 * fence checked inside, so that the check holds between processes too. A commit survives kill -9; `sync` also waits for the
 * disk.
 */
import { randomUUID } from 'node:crypto'
import type { Change, RecordKind } from '../core/record.js'
import type { RouteName } from '../protocol/ids.js'
import { checkKey, compareKeys } from './key.js'
import { acquired, held, renewed, type LeaseRecord } from './lease.js'
import { LmdbFile } from './lmdb-file.js'
import { overlaid, PendingChanges, type PendingRecord, type StoredRecord } from './pending-changes.js'
import { DEFAULT_PAGE, type Fence, type ListOptions, type Page, type Store } from './port.js'
import { ownIdentity } from './process-identity.js'
import { textOf, valueOf } from './record-text.js'

export interface LmdbOptions {
  /** Wait for the disk before a commit is durable. */
  readonly sync: boolean
  /** Wall clock, Unix ms. */
  readonly now: () => number
  /** A record that cannot be read is left out of `list`, and told here; without it such a `list` rejects. */
  readonly onUnreadable?: (kind: RecordKind, key: string) => void
}

export class LmdbStore implements Store {
  readonly #file: LmdbFile
  readonly #pending = new PendingChanges()
  readonly #owner = randomUUID()

  /** Opens or makes the folder, private to its owner. Throws StoreError when it cannot. */
  constructor(folder: string, private readonly options: LmdbOptions) {
    this.#file = new LmdbFile(folder, options.sync)
  }

  async acquire(route: RouteName, leaseMs: number): Promise<Fence> {
    const { now } = this.options
    const lease = await this.#writeLease(route, (current) =>
      acquired(current, { owner: this.#owner, expiresAt: now() + leaseMs, process: ownIdentity() }, now()))
    return { route, number: lease.number }
  }

  async renew(fence: Fence, leaseMs: number): Promise<void> {
    await this.#writeLease(fence.route, (current) => renewed(current, fence, this.options.now() + leaseMs))
  }

  async release(fence: Fence): Promise<void> {
    const { leases } = this.#file
    await this.#file.write(() => {
      const lease = leases.get(fence.route)
      if (lease?.number === fence.number) leases.putSync(fence.route, { ...lease, expiresAt: 0 })
    })
  }

  get(route: RouteName, kind: RecordKind, key: string): unknown {
    checkKey(key)
    const full = fullKey(route, kind, key)
    return this.#file.read(() => {
      const pending = this.#pending.get(full)
      const text = pending === undefined ? this.#file.records.get(bytes(full)) : pending.text
      return text === undefined || text === null ? undefined : valueOf(text, kind, key)
    })
  }

  async list(route: RouteName, kind: RecordKind, { prefix = '', after, limit = DEFAULT_PAGE }: ListOptions = {}): Promise<Page> {
    const whole = fullKey(route, kind, '')
    const first = after !== undefined && compareKeys(after, prefix) > 0 ? after : prefix
    const records: { key: string; value: unknown }[] = []
    return this.#file.read(() => {
      for (const { key: full, text } of this.#range(whole + first, whole + prefix)) {
        const key = full.slice(whole.length)
        if (key === after) continue
        if (records.length === limit) return { records, cursor: records.at(-1)?.key ?? null }
        const value = this.#readable(text, kind, key)
        if (value !== undefined) records.push({ key, value })
      }
      return { records, cursor: null }
    })
  }

  async count(route: RouteName, kind: RecordKind): Promise<number> {
    const { records } = this.#file
    return this.#file.read(() => {
      // '0' is the byte after '/': the first key behind all of this kind.
      const stored = records.getKeysCount({ start: bytes(fullKey(route, kind, '')), end: bytes(`${route}/${kind}0`) })
      return this.#pending.within(fullKey(route, kind, ''))
        .reduce((n, { key, text }) => n + Number(text !== null) - Number(records.doesExist(bytes(key))), stored)
    })
  }

  async commit(changes: readonly Change[], fence: Fence): Promise<void> {
    this.#file.checkOpen()
    const batch = changes.map((change): PendingRecord => ({ key: fullKey(fence.route, change.kind, change.key), text: textOf(change) }))
    const { records, leases } = this.#file
    const settled = this.#pending.add(batch)
    try {
      await this.#file.write(() => {
        held(leases.get(fence.route), fence)
        for (const { key, text } of batch) {
          if (text === null) records.removeSync(bytes(key))
          else records.putSync(bytes(key), text)
        }
      })
    } finally {
      settled()
    }
  }

  async routes(): Promise<readonly RouteName[]> {
    return this.#file.read(() => {
      const names: RouteName[] = []
      for (let start = ''; ; ) {
        const [record] = this.#range(start, '')
        if (record === undefined) return names
        const name = record.key.slice(0, record.key.indexOf('/')) as RouteName
        names.push(name)
        start = `${name}0`
      }
    })
  }

  probe(): Promise<void> {
    return this.#file.probe()
  }

  close(): Promise<void> {
    return this.#file.close()
  }

  /** Records from `start` on while they begin with `prefix`, as text, with what is being written laid over them. */
  #range(start: string, prefix: string): Iterable<StoredRecord> {
    const pending = this.#pending.within(prefix).filter(({ key }) => compareKeys(key, start) >= 0)
    return overlaid(this.#stored(start, prefix), pending)
  }

  *#stored(start: string, prefix: string): Generator<StoredRecord> {
    for (const { key, value: text } of this.#file.records.getRange({ start: bytes(start) })) {
      const full = key.toString()
      if (!full.startsWith(prefix)) return
      yield { key: full, text }
    }
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

  #writeLease(route: RouteName, change: (current: LeaseRecord | undefined) => LeaseRecord): Promise<LeaseRecord> {
    const { leases } = this.#file
    return this.#file.write(() => {
      const lease = change(leases.get(route))
      leases.putSync(route, lease)
      return lease
    })
  }
}

/** Route names and kinds hold no '/', so no key of one can be taken for another's. */
const fullKey = (route: RouteName, kind: RecordKind, key: string): string => `${route}/${kind}/${key}`

const bytes = (key: string): Buffer => Buffer.from(key)
