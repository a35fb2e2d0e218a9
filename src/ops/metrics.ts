/** The metrics of the process (DESIGN §8): the registry, what belongs to no route, and one handle per route. */
import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks'
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { RouteName } from '../protocol/ids.js'
import type { StoreOp } from './metric-labels.js'
import { defineSeries, type Series } from './metric-series.js'
import { RouteMetrics } from './route-metrics.js'

export interface MetricsOptions {
  readonly build: { readonly version: string; readonly git_rev?: string | undefined }
  /** Every packet type of the catalog; other types are counted as `other`. */
  readonly packetTypes: Iterable<string>
  /** Also the runtime's own metrics, under their usual names. */
  readonly processMetrics?: boolean
}

const LAG_RESOLUTION_MS = 20

export class Metrics {
  readonly contentType: string
  readonly #registry = new Registry()
  readonly #series: Series
  readonly #packetTypes: ReadonlySet<string>
  readonly #routes = new Map<RouteName, RouteMetrics>()
  readonly #loopDelay: IntervalHistogram
  #files: () => { readonly staged: number; readonly inbound: number } = () => ({ staged: 0, inbound: 0 })
  #scrape: Promise<string> | null = null

  constructor({ build, packetTypes, processMetrics = false }: MetricsOptions) {
    this.contentType = this.#registry.contentType
    this.#series = defineSeries(this.#registry)
    this.#packetTypes = new Set(packetTypes)
    this.#series.buildInfo.set({ version: build.version, git_rev: build.git_rev ?? '', node: process.versions.node }, 1)
    this.#loopDelay = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS })
    this.#loopDelay.enable()
    if (processMetrics) collectDefaultMetrics({ register: this.#registry })
  }

  /** The handle of a route; the same one for the same name until it is removed. */
  route(name: RouteName): RouteMetrics {
    const known = this.#routes.get(name)
    if (known !== undefined) return known
    const route = new RouteMetrics(name, this.#series, this.#packetTypes, () => this.#routes.delete(name))
    this.#routes.set(name, route)
    return route
  }

  /** The handle of a route that is there; what still comes about a removed one must not bring it back. */
  known(name: RouteName): RouteMetrics | undefined {
    return this.#routes.get(name)
  }

  /** A store operation succeeded after `ms`. */
  storeDone(op: StoreOp, ms: number): void {
    this.#series.storeSeconds.observe({ op }, ms / 1000)
  }

  storeFailed(op: StoreOp): void {
    this.#series.storeErrors.inc({ op })
  }

  /** Where the size of the files is asked for. */
  filesFrom(usage: () => { readonly staged: number; readonly inbound: number }): void {
    this.#files = usage
  }

  /**
   * All metrics in Prometheus' text format, live values asked for now. Never rejects because of one route. Scrapes that
   * overlap share one answer.
   */
  scrape(): Promise<string> {
    this.#scrape ??= this.#collect().finally(() => (this.#scrape = null))
    return this.#scrape
  }

  close(): void {
    this.#loopDelay.disable()
  }

  async #collect(): Promise<string> {
    const owned = await Promise.all([...this.#routes.values()].map((route) => route.collect()))
    this.#series.routesOwned.set(owned.filter(Boolean).length)
    for (const [kind, bytes] of Object.entries(this.#files())) this.#series.filesBytes.set({ kind }, bytes)
    this.#series.eventLoopLag.set(this.#lagSeconds())
    this.#loopDelay.reset()
    return this.#registry.metrics()
  }

  /** What is measured includes the timer's own interval. */
  #lagSeconds(): number {
    const seconds = this.#loopDelay.percentile(99) / 1e9 - LAG_RESOLUTION_MS / 1000
    return Math.max(0, seconds)
  }
}
