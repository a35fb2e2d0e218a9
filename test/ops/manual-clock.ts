/** A clock that stands still until told: timers fire inside `advance`, in order. */
import type { Clock } from '../../src/ops/clock.js'

export class ManualClock implements Clock {
  #now = 0
  #timers: { at: number; fn: () => void }[] = []

  constructor(readonly startedAt = 1_790_000_000_000) {}

  wall(): number {
    return this.startedAt + this.#now
  }

  monotonic(): number {
    return this.#now
  }

  timer(ms: number, fn: () => void): () => void {
    const timer = { at: this.#now + ms, fn }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer)
    }
  }

  get timers(): number {
    return this.#timers.length
  }

  advance(ms: number): void {
    const until = this.#now + ms
    for (;;) {
      const next = this.#timers.filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at)[0]
      if (next === undefined) break
      this.#timers = this.#timers.filter((timer) => timer !== next)
      this.#now = Math.max(this.#now, next.at)
      next.fn()
    }
    this.#now = until
  }
}
