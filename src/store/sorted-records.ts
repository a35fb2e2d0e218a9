/** Records of one route and kind in memory, as text; their keys are sorted when they are asked for. */
import { compareKeys } from './key.js'
import type { StoredRecord } from './pending-changes.js'

export class SortedRecords {
  readonly #texts = new Map<string, string>()
  #sorted: string[] | null = null

  get size(): number {
    return this.#texts.size
  }

  get(key: string): string | undefined {
    return this.#texts.get(key)
  }

  put(key: string, text: string): void {
    if (!this.#texts.has(key)) this.#sorted = null
    this.#texts.set(key, text)
  }

  delete(key: string): void {
    if (this.#texts.delete(key)) this.#sorted = null
  }

  /** Records from `start` on (inclusive), in the byte order of the keys. */
  *from(start: string): Generator<StoredRecord> {
    const keys = (this.#sorted ??= [...this.#texts.keys()].sort(compareKeys))
    for (let i = firstNotBefore(keys, start); i < keys.length; i += 1) {
      const key = keys[i] ?? ''
      yield { key, text: this.#texts.get(key) ?? 'null' }
    }
  }
}

/** Index of the first key that is not before `start`. */
function firstNotBefore(keys: readonly string[], start: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compareKeys(keys[middle] ?? '', start) < 0) low = middle + 1
    else high = middle
  }
  return low
}
