/** `memory:` — everything is gone with the process: for trials and tests. Values are kept as JSON text, so nothing is shared. */
import { randomUUID } from 'node:crypto'
import type { Change, RecordKind } from '../core/record.js'
import { StoreError } from '../protocol/errors.js'
import type { RouteName } from '../protocol/ids.js'
import { checkKey, compareKeys } from './key.js'
import { acquired, held, renewed, type LeaseRecord } from './lease.js'
import { DEFAULT_PAGE, type Fence, type ListOptions, type Page, type Store } from './port.js'
import { ownIdentity } from './process-identity.js'
import { textOf, valueOf } from './record-text.js'
import { SortedRecords } from './sorted-records.js'

export class MemoryStore implements Store {
  readonly #records = new Map<RouteName, Map<RecordKind, SortedRecords>>()
  readonly #leases = new Map<RouteName, LeaseRecord>()
  readonly #owner = randomUUID()
  #closed = false

  /** `now`: wall clock, Unix ms. */
  constructor(private readonly now: () => number) {}

  async acquire(route: RouteName, leaseMs: number): Promise<Fence> {
    this.#checkOpen()
    const next = { owner: this.#owner, expiresAt: this.now() + leaseMs, process: ownIdentity() }
    const lease = acquired(this.#leases.get(route), next, this.now())
    this.#leases.set(route, lease)
    return { route, number: lease.number }
  }

  async renew(fence: Fence, leaseMs: number): Promise<void> {
    this.#checkOpen()
    this.#leases.set(fence.route, renewed(this.#leases.get(fence.route), fence, this.now() + leaseMs))
  }

  async release(fence: Fence): Promise<void> {
    this.#checkOpen()
    const lease = this.#leases.get(fence.route)
    if (lease?.number === fence.number) this.#leases.set(fence.route, { ...lease, expiresAt: 0 })
  }

  get(route: RouteName, kind: RecordKind, key: string): unknown {
    this.#checkOpen()
    checkKey(key)
    const text = this.#of(route, kind).get(key)
    return text === undefined ? undefined : valueOf(text, kind, key)
  }

  async list(route: RouteName, kind: RecordKind, { prefix = '', after, limit = DEFAULT_PAGE }: ListOptions = {}): Promise<Page> {
    this.#checkOpen()
    const first = after !== undefined && compareKeys(after, prefix) > 0 ? after : prefix
    const records: { key: string; value: unknown }[] = []
    for (const { key, text } of this.#of(route, kind).from(first)) {
      if (!key.startsWith(prefix)) break
      if (key === after) continue
      if (records.length === limit) return { records, cursor: records.at(-1)?.key ?? null }
      records.push({ key, value: valueOf(text, kind, key) })
    }
    return { records, cursor: null }
  }

  async count(route: RouteName, kind: RecordKind): Promise<number> {
    this.#checkOpen()
    return this.#of(route, kind).size
  }

  async commit(changes: readonly Change[], fence: Fence): Promise<void> {
    this.#checkOpen()
    held(this.#leases.get(fence.route), fence)
    // All texts first: what cannot be stored leaves nothing of its batch behind.
    const batch = changes.map((change) => ({ ...change, text: textOf(change) }))
    for (const { kind, key, text } of batch) {
      const records = this.#of(fence.route, kind)
      if (text === null) records.delete(key)
      else records.put(key, text)
    }
  }

  async routes(): Promise<readonly RouteName[]> {
    this.#checkOpen()
    return [...this.#records].filter(([, kinds]) => [...kinds.values()].some(({ size }) => size > 0)).map(([route]) => route).sort(compareKeys)
  }

  async probe(): Promise<void> {
    this.#checkOpen()
  }

  async close(): Promise<void> {
    this.#closed = true
  }

  #of(route: RouteName, kind: RecordKind): SortedRecords {
    const kinds = this.#records.get(route) ?? new Map<RecordKind, SortedRecords>()
    this.#records.set(route, kinds)
    const records = kinds.get(kind) ?? new SortedRecords()
    kinds.set(kind, records)
    return records
  }

  #checkOpen(): void {
    if (this.#closed) throw new StoreError('store_unavailable', 'the store is closed')
  }
}
