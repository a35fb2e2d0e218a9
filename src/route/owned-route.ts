/**
 * A route and its lease (DESIGN §7): it runs while this process owns it. When another process has taken it, it ends, and its
 * successor waits for the lease like any other.
 */
import type { Cancel, Clock } from '../ops/clock.js'
import type { Logger } from '../ops/logger.js'
import { StoreError } from '../protocol/errors.js'
import type { RouteName } from '../protocol/ids.js'
import type { Fence, Store } from '../store/port.js'
import type { Route } from './route.js'

/** How often a lease that another process holds is asked for again. */
const ACQUIRE_RETRY_MS = 500
/** How often loading is tried again. */
const RELOAD_RETRY_MS = 5_000

export interface OwnedRouteOptions {
  readonly name: RouteName
  /** Makes the route anew, each time after the one before has stopped; it calls back when it finds its fence lost. */
  readonly make: (onFenceLost: () => void) => Route
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly leaseMs: number
}

export class OwnedRoute {
  #route: Route
  #fence: Fence | null = null
  #waitingFor: string | null = 'the route is starting'
  #cancel: Cancel | null = null
  #stopped = false
  #working: Promise<void> | null = null

  constructor(private readonly options: OwnedRouteOptions) {
    this.#route = this.#made()
  }

  /** The route as it is now. */
  get route(): Route {
    return this.#route
  }

  notReady(): readonly string[] {
    return this.#waitingFor === null ? this.#route.notReady() : [`${this.options.name}: ${this.#waitingFor}`]
  }

  /** Starts the route as soon as its lease is free; resolves at the first attempt's end, whatever it gave. */
  start(): Promise<void> {
    return this.#work(this.#acquire())
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel?.()
    await this.#working?.catch(() => {})
    await this.#route.stop()
    const { store, log } = this.options
    if (this.#fence !== null) await store.release(this.#fence).catch((error: unknown) => log.warn({ err: error }, 'the lease could not be released'))
  }

  #made(): Route {
    const route = this.options.make(() => this.#lost(route))
    return route
  }

  /** One thing at a time; what fails in the background is said. */
  #work(work: Promise<void>): Promise<void> {
    this.#working = work
    work.catch((failure: unknown) => this.options.log.error({ err: failure }, 'the route could not be started'))
    return work
  }

  async #acquire(): Promise<void> {
    if (this.#stopped) return
    const { store, name, leaseMs, log } = this.options
    let fence: Fence
    try {
      fence = await store.acquire(name, leaseMs)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      if (this.#waitingFor !== error.message) log.warn({ code: error.code }, `this route cannot be served yet: ${error.message}`)
      this.#waitingFor = error.message
      return this.#acquireLater()
    }
    this.#fence = fence
    try {
      await this.#route.start(fence)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      return this.#notLoaded(fence, error)
    }
    if (this.#fence !== fence) return
    this.#waitingFor = null
    this.#renewLater(fence)
  }

  /** What is stored could not be read: nothing is done with half of it. Others may try, and this process does again. */
  async #notLoaded(fence: Fence, error: StoreError): Promise<void> {
    const { store, log } = this.options
    if (this.#waitingFor !== error.message) log.error({ err: error }, 'what is stored of this route cannot be loaded')
    this.#waitingFor = error.message
    this.#fence = null
    await this.#route.stop()
    await store.release(fence).catch(() => {})
    if (this.#stopped) return
    this.#route = this.#made()
    this.#acquireLater(RELOAD_RETRY_MS)
  }

  #acquireLater(ms = ACQUIRE_RETRY_MS): void {
    if (this.#stopped) return
    this.#cancel = this.options.clock.timer(ms, () => void this.#work(this.#acquire()))
  }

  #renewLater(fence: Fence): void {
    if (this.#stopped || this.#fence !== fence) return
    this.#cancel = this.options.clock.timer(this.options.leaseMs / 3, () => void this.#renew(fence))
  }

  /** A store that does not answer is no loss of ownership: every commit checks the fence itself. */
  async #renew(fence: Fence): Promise<void> {
    if (this.#stopped || this.#fence !== fence) return
    try {
      await this.options.store.renew(fence, this.options.leaseMs)
    } catch (error) {
      if (error instanceof StoreError && error.code === 'fence_lost') return this.#route.fenceLost()
      this.options.log.warn({ err: error }, 'the lease could not be renewed')
    }
    this.#renewLater(fence)
  }

  /** The route has ended itself; another one of this process may own it later. */
  #lost(route: Route): void {
    if (this.#stopped || this.#fence === null || this.#route !== route) return
    this.#fence = null
    this.#waitingFor = 'another process owns this route'
    this.#cancel?.()
    void this.#work(this.#replaced(route))
  }

  async #replaced(route: Route): Promise<void> {
    await route.stop()
    if (this.#stopped) return
    this.#route = this.#made()
    this.#acquireLater()
  }
}
