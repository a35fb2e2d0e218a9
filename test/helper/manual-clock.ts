import type { Cancel, Clock } from '../../src/ops/clock.js'

interface Due {
  readonly at: number
  readonly fn: () => void
}

/** A clock that only moves when told to: `advance` fires what falls due on the way, in order of time. */
export class ManualClock implements Clock {
  #now = 0
  readonly #timers = new Set<Due>()

  constructor(private readonly startWall = 1_800_000_000_000) {}

  wall(): number {
    return this.startWall + this.#now
  }

  monotonic(): number {
    return this.#now
  }

  timer(ms: number, fn: () => void): Cancel {
    const due = { at: this.#now + Math.max(ms, 0), fn }
    this.#timers.add(due)
    return () => this.#timers.delete(due)
  }

  /** Timers that have neither fired nor been cancelled. */
  get pending(): number {
    return this.#timers.size
  }

  /** Moves on by `ms`; a timer that is started on the way fires too when it falls due within. */
  advance(ms: number): void {
    const end = this.#now + ms
    for (;;) {
      const next = [...this.#timers].reduce<Due | null>((first, due) => (first === null || due.at < first.at ? due : first), null)
      if (next === null || next.at > end) break
      this.#timers.delete(next)
      this.#now = Math.max(this.#now, next.at)
      next.fn()
    }
    this.#now = end
  }
}
