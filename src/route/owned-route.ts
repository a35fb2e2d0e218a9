/** A route and its lease (DESIGN §7): it runs while this process owns it, and stops when another has taken it. */
import type { Clock } from '../ops/clock.js'
import type { Logger } from '../ops/logger.js'
import { StoreError } from '../protocol/errors.js'
import type { Fence, Store } from '../store/port.js'
import type { Route } from './route.js'

/** How often a lease that another process holds is asked for again. */
const ACQUIRE_RETRY_MS = 500

export class OwnedRoute {
  #fence: Fence | null = null
  #waitingFor: string | null = 'the route is starting'
  #cancel: (() => void) | null = null
  #stopped = false
  #starting: Promise<void> | null = null

  constructor(
    readonly route: Route,
    private readonly store: Store,
    private readonly clock: Clock,
    private readonly log: Logger,
    private readonly leaseMs: number,
  ) {}

  notReady(): readonly string[] {
    return this.#waitingFor === null ? this.route.notReady() : [`${this.route.name}: ${this.#waitingFor}`]
  }

  /** Starts the route as soon as its lease is free; resolves at the first attempt's end, whatever it gave. */
  async start(): Promise<void> {
    this.#starting = this.#acquire()
    await this.#starting
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel?.()
    await this.#starting?.catch(() => {})
    await this.route.stop()
    if (this.#fence !== null) await this.store.release(this.#fence).catch((error: unknown) => this.log.warn({ err: error }, 'the lease could not be released'))
  }

  async #acquire(): Promise<void> {
    if (this.#stopped) return
    try {
      this.#fence = await this.store.acquire(this.route.name, this.leaseMs)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      if (this.#waitingFor !== error.message) this.log.warn({ code: error.code }, `this route cannot be served yet: ${error.message}`)
      this.#waitingFor = error.message
      this.#cancel = this.clock.timer(ACQUIRE_RETRY_MS, () => {
        this.#starting = this.#acquire()
        this.#starting.catch((failure: unknown) => this.log.error({ err: failure }, 'the route could not be started'))
      })
      return
    }
    this.#waitingFor = null
    await this.route.start(this.#fence)
    this.#renewLater()
  }

  #renewLater(): void {
    if (this.#stopped) return
    this.#cancel = this.clock.timer(this.leaseMs / 3, () => {
      void this.#renew()
    })
  }

  /** A store that does not answer is no loss of ownership: every commit checks the fence itself. */
  async #renew(): Promise<void> {
    const fence = this.#fence
    if (fence === null || this.#stopped) return
    try {
      await this.store.renew(fence, this.leaseMs)
    } catch (error) {
      if (error instanceof StoreError && error.code === 'fence_lost') return this.route.fenceLost()
      this.log.warn({ err: error }, 'the lease could not be renewed')
    }
    this.#renewLater()
  }
}
