/** The sweep (v1 §7.2: not more than half a ttl apart): forgets what is over, keeps bounds, counts the store. */
import { COMPLETED_FACTOR } from '../core/inbound-end.js'
import { channelKey, orderPrefix, type CallRecord, type Change, type DeadLetterRecord } from '../core/record.js'
import { eachRecord, type Store } from '../store/port.js'
import type { Entry } from './channel-table.js'
import type { RouteContext } from './context.js'

/** Ids of channels that never signed in are kept this long after their last xAgent link (DESIGN §3 Ids). */
const UNSIGNED_KEPT_MS = 3_600_000
const DELETED_AT_ONCE = 500

interface OrderKinds {
  readonly order: 'completed_order' | 'outbound_order'
  readonly record: 'completed' | 'outbound'
}
const ORDERS: readonly OrderKinds[] = [
  { order: 'completed_order', record: 'completed' },
  { order: 'outbound_order', record: 'outbound' },
]

export class Housekeeping {
  /** Dead letters that are kept now. */
  deadLetters = 0
  #deadLetterBytes = 0
  /** What the store holds beyond what the state says, from the last count at rest. */
  storeDifference = { inbound: 0, outbound: 0 }
  #cancel: (() => void) | null = null
  #stopped = false
  readonly #trimming = new Set<string>()

  constructor(
    private readonly context: RouteContext,
    private readonly store: Store,
    private readonly pending: () => { inbound: number; outbound: number } | null,
    private readonly onRemoved: (entry: Entry) => void,
  ) {}

  /** Counts what is there, then sweeps at the interval. */
  async start(): Promise<void> {
    for await (const { value } of eachRecord(this.store, this.context.settings.name, 'dead_letter')) this.#countDeadLetter(value as DeadLetterRecord, 1)
    this.#schedule()
  }

  stop(): void {
    this.#stopped = true
    this.#cancel?.()
  }

  /** A dead letter was written. */
  added(bytes: number): void {
    this.deadLetters += 1
    this.#deadLetterBytes += bytes
    const { max, maxBytes } = this.context.settings.deadLetters
    if (this.deadLetters > max || this.#deadLetterBytes > maxBytes) void this.#once('dead_letters', () => this.#trimDeadLetters())
  }

  /** A dead letter was removed elsewhere: it is sent again. */
  gone(bytes: number): void {
    this.deadLetters -= 1
    this.#deadLetterBytes -= bytes
  }

  /** A channel has more completed ids than it may keep: the oldest go (DESIGN §4 Dedupe). */
  trim(entry: Entry, kind: 'completed' | 'outbound'): void {
    const kinds = ORDERS.find((order) => order.record === kind)
    if (kinds !== undefined) void this.#once(`${kind}/${entry.id}`, () => this.#forget(entry, kinds, this.context.now()))
  }

  /** One sweep. Store failures are left to the next one: nothing is lost by forgetting later. */
  async sweep(): Promise<void> {
    const now = this.context.now()
    for (const entry of [...this.context.table]) {
      if (this.#stopped) return
      for (const kinds of ORDERS) if (this.#count(entry, kinds) > 0) await this.#forget(entry, kinds, now)
      this.#removeUnsigned(entry, now)
    }
    await this.#trimDeadLetters()
    await this.#forgetCalls(now)
    await this.#countStore()
  }

  #schedule(): void {
    if (this.#stopped) return
    this.#cancel = this.context.clock.timer(this.context.settings.sweepIntervalMs, () => {
      void this.#once('sweep', () => this.sweep()).then(() => this.#schedule())
    })
  }

  /** Not twice at the same time, and never an unhandled rejection. */
  async #once(name: string, work: () => Promise<void>): Promise<void> {
    if (this.#trimming.has(name) || this.#stopped) return
    this.#trimming.add(name)
    try {
      await work()
    } catch (error) {
      this.context.log.warn({ err: error }, 'the sweep could not be finished')
    } finally {
      this.#trimming.delete(name)
    }
  }

  async #forget(entry: Entry, { order, record }: OrderKinds, now: number): Promise<void> {
    const bound = COMPLETED_FACTOR * this.context.shared.limits.maxMessages
    for (;;) {
      const page = await this.store.list(this.context.settings.name, order, { prefix: orderPrefix(entry.id), limit: DELETED_AT_ONCE })
      const surplus = this.#count(entry, { order, record }) - bound
      const over = page.records.filter(({ key }, index) => index < surplus || untilOf(key) <= now)
      if (over.length === 0) return
      const changes: Change[] = []
      for (const { key, value } of over) {
        changes.push({ op: 'delete', kind: order, key })
        // The id may have been used anew since: then another order key speaks for the record.
        const current = (await this.store.get(this.context.settings.name, record, String(value))) as { until: number } | undefined
        if (current?.until === untilOf(key)) changes.push({ op: 'delete', kind: record, key: String(value) })
      }
      await this.#commit(changes)
      if (record === 'completed') entry.channel.completedCount -= over.length
      else entry.channel.endedOutboundCount -= over.length
    }
  }

  #count(entry: Entry, { record }: OrderKinds): number {
    return record === 'completed' ? entry.channel.completedCount : entry.channel.endedOutboundCount
  }

  #removeUnsigned(entry: Entry, now: number): void {
    if (entry.everConnected || entry.channel.link !== null || entry.lastLinkGoneAt === null) return
    if (entry.lastLinkGoneAt + UNSIGNED_KEPT_MS > now || entry.channel.bySeq.size > 0) return
    this.context.table.remove(entry)
    this.onRemoved(entry)
    this.context.commits.push([{ op: 'delete', kind: 'channel', key: channelKey(entry.id) }, { op: 'delete', kind: 'turn', key: channelKey(entry.id) }], null)
  }

  /** Oldest first: those whose time is over, and as many more as the bounds ask for, which is counted as overflow. */
  async #trimDeadLetters(): Promise<void> {
    const { max, maxBytes, ttlMs } = this.context.settings.deadLetters
    for (;;) {
      const page = await this.store.list(this.context.settings.name, 'dead_letter', { limit: DELETED_AT_ONCE })
      const changes: Change[] = []
      let dropped = 0
      for (const { key, value } of page.records) {
        const record = value as DeadLetterRecord
        const expired = record.endedAt + ttlMs <= this.context.now()
        if (!expired && this.deadLetters <= max && this.#deadLetterBytes <= maxBytes) break
        if (!expired) dropped += 1
        this.#countDeadLetter(record, -1)
        changes.push({ op: 'delete', kind: 'dead_letter', key })
        if (record.bodyKey !== null) changes.push({ op: 'delete', kind: 'body', key: record.bodyKey })
      }
      if (changes.length === 0) return
      if (dropped > 0) {
        this.context.metrics.overflowed('dead_letters', dropped)
        this.context.log.warn({ dropped }, 'the oldest dead letters were dropped to keep within retention.dead_letters and dead_letter_bytes')
      }
      await this.#commit(changes)
    }
  }

  /** Tool calls of agents are few: all are looked at. */
  async #forgetCalls(now: number): Promise<void> {
    const over: Change[] = []
    for await (const { key, value } of eachRecord(this.store, this.context.settings.name, 'call')) {
      if ((value as CallRecord).until <= now) over.push({ op: 'delete', kind: 'call', key })
    }
    if (over.length > 0) await this.#commit(over)
  }

  #countDeadLetter(record: DeadLetterRecord, sign: 1 | -1): void {
    this.deadLetters += sign
    this.#deadLetterBytes += sign * record.bytes
  }

  /** Pending counted from the store itself, when nothing is on its way there: the ledger's second opinion. */
  async #countStore(): Promise<void> {
    if (!this.context.commits.idle) return
    const before = this.pending()
    const name = this.context.settings.name
    const [inbound, outbound, ended] = [await this.store.count(name, 'inbound'), await this.store.count(name, 'outbound'), await this.store.count(name, 'outbound_order')]
    const after = this.pending()
    const still = before !== null && after !== null && this.context.commits.idle && before.inbound === after.inbound && before.outbound === after.outbound
    if (still) this.storeDifference = { inbound: inbound - after.inbound, outbound: outbound - ended - after.outbound }
  }

  #commit(changes: Change[]): Promise<void> {
    return new Promise((resolve) => this.context.commits.push(changes, resolve))
  }
}

/** The end of retention in an order key: `…/<16 digits>/<message id>`. */
function untilOf(key: string): number {
  const parts = key.split('/')
  return Number(parts[1])
}
