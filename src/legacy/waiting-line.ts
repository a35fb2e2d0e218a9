/** A first-in-first-out line in which nobody waits longer than a limit. */
import type { Cancel, Clock } from '../ops/clock.js'

interface Place<T> {
  readonly item: T
  readonly cancel: Cancel
}

export class WaitingLine<T> {
  #places: Place<T>[] = []

  /** `onExpired` gets what has waited for `waitMs` and has left the line. */
  constructor(private readonly clock: Clock, private readonly waitMs: number, private readonly onExpired: (item: T) => void) {}

  get length(): number {
    return this.#places.length
  }

  push(item: T): void {
    this.#places.push(this.#place(item))
  }

  /** Puts back what had its turn and needs another one at once; its limit starts anew. */
  pushFront(item: T): void {
    this.#places.unshift(this.#place(item))
  }

  /** The one that waits longest, or null. */
  shift(): T | null {
    const place = this.#places.shift()
    place?.cancel()
    return place?.item ?? null
  }

  /** Empties the line. */
  clear(): readonly T[] {
    const places = this.#places
    this.#places = []
    for (const place of places) place.cancel()
    return places.map((place) => place.item)
  }

  #place(item: T): Place<T> {
    const place: Place<T> = {
      item,
      cancel: this.clock.timer(this.waitMs, () => {
        this.#places = this.#places.filter((other) => other !== place)
        this.onExpired(item)
      }),
    }
    return place
  }
}
