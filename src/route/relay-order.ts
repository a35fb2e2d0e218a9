/** Keeps the messages of a channel in order where one of them must wait for its files. */
import type { Entry } from './channel-table.js'

export class RelayOrder {
  /** By channel: resolved when everything so far has gone on. */
  readonly #tails = new Map<Entry, Promise<void>>()

  /** Goes on with the values, at once where neither they nor an earlier message are waited for. */
  follow<T>(entry: Entry, values: readonly (T | Promise<T>)[], goOn: (values: readonly T[]) => void, failed: (error: unknown) => void): void {
    const before = this.#tails.get(entry)
    if (before === undefined && !values.some((value) => value instanceof Promise)) return goOn(values as readonly T[])
    const all = Promise.all(values)
    // Whoever waits for the earlier message must not make a failure here an unhandled one.
    all.catch(() => undefined)
    const tail = (before ?? Promise.resolve()).then(() => all).then(goOn).catch(failed).finally(() => {
      if (this.#tails.get(entry) === tail) this.#tails.delete(entry)
    })
    this.#tails.set(entry, tail)
  }
}
