/** `memory:` — everything is gone with the process: for trials and tests. Values are kept as JSON text, so nothing is shared. */
import { randomUUID } from 'node:crypto'
import type { Change, RecordKind } from '../core/record.js'
import { StoreError } from '../protocol/errors.js'
import type { RouteName } from '../protocol/ids.js'
import { acquired, held, renewed, type LeaseRecord } from './lease.js'
import { DEFAULT_PAGE, type Fence, type ListOptions, type Page, type Store } from './port.js'
import { ownIdentity } from './process-identity.js'

/** Records of one route and kind; the sorted keys are made when they are asked for. */
class Records {
  readonly values = new Map<string, string>()
  #sorted: string[] | null = null

  put(key: string, text: string): void {
    if (!this.values.has(key)) this.#sorted = null
    this.values.set(key, text)
  }

  delete(key: string): void {
    if (this.values.delete(key)) this.#sorted = null
  }

  sorted(): readonly string[] {
    this.#sorted ??= [...this.values.keys()].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    return this.#sorted
  }
}

export class MemoryStore implements Store {
  readonly #records = new Map<string, Records>()
  readonly #leases = new Map<RouteName, LeaseRecord>()
  readonly #owner = randomUUID()
  #closed = false

  constructor(private readonly now: () => number) {}

  async acquire(route: RouteName, leaseMs: number): Promise<Fence> {
    this.#usable()
    const lease = acquired(this.#leases.get(route), { owner: this.#owner, expiresAt: this.now() + leaseMs, process: ownIdentity() }, this.now())
    this.#leases.set(route, lease)
    return { route, number: lease.number }
  }

  async renew(fence: Fence, leaseMs: number): Promise<void> {
    this.#usable()
    this.#leases.set(fence.route, renewed(this.#leases.get(fence.route), fence, this.now() + leaseMs))
  }

  async release(fence: Fence): Promise<void> {
    const lease = this.#leases.get(fence.route)
    if (lease?.number === fence.number) this.#leases.set(fence.route, { ...lease, expiresAt: 0 })
  }

  get(route: RouteName, kind: RecordKind, key: string): unknown {
    this.#usable()
    const text = this.#records.get(`${route}/${kind}`)?.values.get(key)
    return text === undefined ? undefined : JSON.parse(text)
  }

  async list(route: RouteName, kind: RecordKind, { prefix = '', after, limit = DEFAULT_PAGE }: ListOptions = {}): Promise<Page> {
    this.#usable()
    const records = this.#records.get(`${route}/${kind}`)
    const keys = (records?.sorted() ?? []).filter((key) => key.startsWith(prefix) && (after === undefined || Buffer.compare(Buffer.from(key), Buffer.from(after)) > 0))
    const page = keys.slice(0, limit).map((key) => ({ key, value: JSON.parse(records?.values.get(key) ?? 'null') as unknown }))
    return { records: page, cursor: keys.length > limit ? (page.at(-1)?.key ?? null) : null }
  }

  async count(route: RouteName, kind: RecordKind): Promise<number> {
    this.#usable()
    return this.#records.get(`${route}/${kind}`)?.values.size ?? 0
  }

  async commit(changes: readonly Change[], fence: Fence): Promise<void> {
    this.#usable()
    held(this.#leases.get(fence.route), fence)
    const texts = changes.map((change) => (change.op === 'put' ? JSON.stringify(change.value ?? null) : null))
    changes.forEach((change, index) => {
      const records = this.#of(fence.route, change.kind)
      const text = texts[index]
      if (text === null || text === undefined) records.delete(change.key)
      else records.put(change.key, text)
    })
  }

  async routes(): Promise<readonly RouteName[]> {
    const names = [...this.#records].filter(([, records]) => records.values.size > 0).map(([name]) => name.slice(0, name.indexOf('/')) as RouteName)
    return [...new Set(names)]
  }

  async probe(): Promise<void> {
    this.#usable()
  }

  async close(): Promise<void> {
    this.#closed = true
  }

  #of(route: RouteName, kind: RecordKind): Records {
    const name = `${route}/${kind}`
    const records = this.#records.get(name) ?? new Records()
    this.#records.set(name, records)
    return records
  }

  #usable(): void {
    if (this.#closed) throw new StoreError('store_unavailable', 'the store is closed')
  }
}
