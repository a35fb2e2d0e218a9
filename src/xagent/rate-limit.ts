/** A token bucket: up to one second's worth at once, refilled continuously. */
export class RateLimit {
  readonly #perSecond: number
  #tokens: number
  #refilledAt: number

  /** `now` is monotonic time in ms. */
  constructor(perSecond: number, now: number) {
    this.#perSecond = perSecond
    this.#tokens = perSecond
    this.#refilledAt = now
  }

  /** Takes one token; false when none is left. */
  take(now: number): boolean {
    this.#tokens = Math.min(this.#perSecond, this.#tokens + ((now - this.#refilledAt) * this.#perSecond) / 1000)
    this.#refilledAt = now
    if (this.#tokens < 1) return false
    this.#tokens -= 1
    return true
  }
}
