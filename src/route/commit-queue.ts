/**
 * Everything a route writes goes through here, in order: changes that come while a batch is being written join the next one.
 * A failed batch is tried again until it is written, so nothing is skipped and nothing overtakes (DESIGN §7).
 */
import type { Change, RecordKind } from '../core/record.js'
import type { Clock } from '../ops/clock.js'
import { StoreError } from '../protocol/errors.js'
import type { Fence, Store } from '../store/port.js'

const RETRY_MS = 500

interface Batch {
  readonly changes: Change[]
  readonly then: (() => void)[]
}

export interface CommitQueueEvents {
  /** The store failed, or works again. */
  readonly onHealth: (healthy: boolean, error: StoreError | null) => void
  /** Another process owns the route: nothing more will be written, and what waits is not ours any more. */
  readonly onFenceLost: () => void
}

/** A value that is queued: not in the store yet, but what a reader must see. */
interface Queued {
  readonly value: unknown
  readonly batch: Batch
}

export class CommitQueue {
  #open: Batch = { changes: [], then: [] }
  #writing: Batch | null = null
  readonly #overlay = new Map<string, Queued>()
  #scheduled = false
  #healthy = true
  #lost = false
  #cancelRetry: (() => void) | null = null
  #idle: (() => void)[] = []

  constructor(
    private readonly store: Store,
    private readonly fence: Fence,
    private readonly clock: Clock,
    private readonly events: CommitQueueEvents,
  ) {}

  get healthy(): boolean {
    return this.#healthy
  }

  /** Nothing waits to be written. */
  get idle(): boolean {
    return this.#writing === null && this.#open.changes.length === 0
  }

  /** Queues changes that belong together; `then` is called once, when they are durable. */
  push(changes: readonly Change[], then: (() => void) | null): void {
    if (this.#lost) return
    for (const change of changes) {
      this.#open.changes.push(change)
      this.#overlay.set(`${change.kind}/${change.key}`, { value: change.op === 'put' ? change.value : undefined, batch: this.#open })
    }
    if (then !== null) this.#open.then.push(then)
    if (!this.#scheduled && this.#writing === null) {
      this.#scheduled = true
      queueMicrotask(() => {
        this.#scheduled = false
        this.#next()
      })
    }
  }

  /**
   * What the record is, queued changes included. Synchronous where the store is. Rejects or throws `StoreError`: never takes
   * a failed read for "not there".
   */
  read(kind: RecordKind, key: string): unknown {
    const queued = this.#overlay.get(`${kind}/${key}`)
    return queued === undefined ? this.store.get(this.fence.route, kind, key) : queued.value
  }

  /** Resolves when everything queued so far is durable, or the fence is lost. */
  async drained(): Promise<void> {
    if (this.idle || this.#lost) return
    await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  /** Stops trying; what waits is not written. */
  close(): void {
    this.#lost = true
    this.#cancelRetry?.()
    this.#settle()
  }

  #next(): void {
    if (this.#writing !== null || this.#lost) return
    if (this.#open.changes.length === 0 && this.#open.then.length === 0) return this.#settle()
    this.#writing = this.#take()
    this.#write(this.#writing)
  }

  #take(): Batch {
    const batch = this.#open
    this.#open = { changes: [], then: [] }
    return batch
  }

  #write(batch: Batch): void {
    this.store.commit(batch.changes, this.fence).then(
      () => this.#written(batch),
      (error: unknown) => this.#failed(batch, error),
    )
  }

  #written(batch: Batch): void {
    for (const change of batch.changes) {
      const name = `${change.kind}/${change.key}`
      if (this.#overlay.get(name)?.batch === batch) this.#overlay.delete(name)
    }
    this.#writing = null
    if (!this.#healthy) {
      this.#healthy = true
      this.events.onHealth(true, null)
    }
    for (const then of batch.then) then()
    this.#next()
  }

  #failed(batch: Batch, error: unknown): void {
    if (this.#lost) return
    const failure = error instanceof StoreError ? error : new StoreError('store_unavailable', 'the store failed', { cause: error })
    if (failure.code === 'fence_lost') {
      this.close()
      return this.events.onFenceLost()
    }
    this.#healthy = false
    this.events.onHealth(false, failure)
    this.#cancelRetry = this.clock.timer(RETRY_MS, () => {
      this.#cancelRetry = null
      this.#write(batch)
    })
  }

  #settle(): void {
    for (const resolve of this.#idle.splice(0)) resolve()
  }
}

