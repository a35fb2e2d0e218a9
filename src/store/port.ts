/**
 * The store port (DESIGN §7): what the gateway asks of any store. Every store passes test/contract/store-suite.ts.
 *
 * Rules that the callers rely on:
 * - `commit` is atomic: all changes or none; it resolves when they are durable. Commits of one route become durable in the
 *   order in which they were called.
 * - A batch that is being written is already visible to `get`, `list`, `count` and `body`.
 * - Each route has one owner. Every commit carries the owner's fence; a commit with an older fence changes nothing and
 *   rejects with `StoreError` `fence_lost`.
 * - Values are plain JSON data. Keys are non-empty well-formed strings of at most 1,500 UTF-8 bytes (a RangeError otherwise:
 *   our own bug); `list` answers in the byte order of the keys.
 */
import type { Change, RecordKind } from '../core/record.js'
import type { RouteName } from '../protocol/ids.js'

/** Proof of ownership of one route, from `acquire`. Higher = later. */
export interface Fence {
  readonly route: RouteName
  readonly number: number
}

/** Records of a page when a caller does not say. */
export const DEFAULT_PAGE = 1_000

export interface ListOptions {
  /** Only keys that start with this. */
  readonly prefix?: string
  /** Only keys after this one (exclusive): the `cursor` of the page before. */
  readonly after?: string
  /** At most this many records; default 1,000. */
  readonly limit?: number
}

export interface Page {
  readonly records: readonly { readonly key: string; readonly value: unknown }[]
  /** Pass as `after` to go on; null when this was the last page. */
  readonly cursor: string | null
}

export interface Store {
  /**
   * Becomes the owner of a route for `leaseMs` and returns the new fence. A lease held by a live other owner rejects with
   * `StoreError` `lease_held`; one whose holder is provably gone (same machine, process ended) is taken at once.
   */
  acquire(route: RouteName, leaseMs: number): Promise<Fence>
  /** Extends the lease; rejects with `fence_lost` when another owner has taken the route. */
  renew(fence: Fence, leaseMs: number): Promise<void>
  /** Ends ownership early, so that the next owner need not wait. Never rejects for a fence already lost. */
  release(fence: Fence): Promise<void>
  /** One record, or undefined. Synchronous where the store can. */
  get(route: RouteName, kind: RecordKind, key: string): unknown | Promise<unknown>
  list(route: RouteName, kind: RecordKind, options?: ListOptions): Promise<Page>
  /** Number of records of a kind, counted from the store itself. */
  count(route: RouteName, kind: RecordKind): Promise<number>
  commit(changes: readonly Change[], fence: Fence): Promise<void>
  /** Routes that have any record. */
  routes(): Promise<readonly RouteName[]>
  /** Writes and removes a probe; rejects with `store_unavailable` when the store cannot be written. */
  probe(): Promise<void>
  /** Flushes and closes; further calls reject. */
  close(): Promise<void>
}

/** Every record of a kind, page by page. */
export async function* eachRecord(store: Store, route: RouteName, kind: RecordKind, prefix?: string): AsyncGenerator<{ key: string; value: unknown }> {
  let after: string | undefined
  for (;;) {
    const page = await store.list(route, kind, { ...(prefix !== undefined && { prefix }), ...(after !== undefined && { after }) })
    yield* page.records
    if (page.cursor === null) return
    after = page.cursor
  }
}
