/**
 * Gaps: times in which the connector's channels could not be read (DESIGN §3 "Always listening"). From a restart the gap
 * counts from the last moment that the earlier run is known to have listened.
 */
import type { Gap } from '../core/record.js'
import type { RouteContext } from './context.js'

const MAX_GAPS = 100

export class GapWatch {
  #open: { from: number; cause: Gap['cause'] } | null = null

  constructor(
    private readonly context: RouteContext,
    private readonly save: () => void,
  ) {}

  get open(): boolean {
    return this.#open !== null
  }

  /** At start: nobody listened since the last-alive time of the run before. */
  started(lastAliveAt: number | null): void {
    if (lastAliveAt !== null) this.#open = { from: lastAliveAt, cause: 'restart' }
  }

  /** The main link is lost. A gap that is open already goes on. */
  lost(): void {
    this.#open ??= { from: this.context.now(), cause: 'link_lost' }
  }

  /** Every channel is open again. Without any channel there was nothing to miss. */
  closed(): void {
    const gap = this.#open
    this.#open = null
    if (gap === null || this.context.table.size === 0) return
    const to = this.context.now()
    const { facts, log, metrics, shared } = this.context
    facts.gaps = [...facts.gaps, { from: gap.from, to, cause: gap.cause }].slice(-MAX_GAPS)
    this.save()
    metrics.gap(Math.max(0, to - gap.from))
    log.warn(
      { gapMs: to - gap.from, cause: gap.cause, channels: this.context.table.size, meanwhile: shared.dialect.preset.whileClosed },
      `the connector could not be read for ${to - gap.from} ms; what it does to messages meanwhile: ${shared.dialect.preset.whileClosed}`,
    )
  }
}
