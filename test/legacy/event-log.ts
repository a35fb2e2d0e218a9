/** What happened so far, and waiting for what has not happened yet: tests wait for events, never for time. */
export class EventLog<T> {
  readonly all: T[] = []
  #waiting: (() => void)[] = []

  add(event: T): void {
    this.all.push(event)
    const waiting = this.#waiting
    this.#waiting = []
    for (const look of waiting) look()
  }

  /** The nth event that matches, from 1, as soon as it is there. */
  async waitFor(matches: (event: T) => boolean = () => true, nth = 1): Promise<T> {
    for (;;) {
      const found = this.all.filter(matches)[nth - 1]
      if (found !== undefined) return found
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }
}
