/**
 * Changes on their way to the disk, as readers must see them already (store port: a batch being written is visible). Several
 * batches may change one key: a failed one uncovers what the others wrote.
 */
import { compareKeys } from './key.js'

/** A record as text; null = deleted. */
export interface PendingRecord {
  readonly key: string
  readonly text: string | null
}

export interface StoredRecord {
  readonly key: string
  readonly text: string
}

interface Layer extends PendingRecord {
  below: Layer | undefined
}

export class PendingChanges {
  readonly #latest = new Map<string, Layer>()

  /** Shows a batch from now on, until the returned function is called: its changes are in the store then, or have failed. */
  add(changes: readonly PendingRecord[]): () => void {
    const layers = changes.map(({ key, text }) => {
      const layer: Layer = { key, text, below: this.#latest.get(key) }
      this.#latest.set(key, layer)
      return layer
    })
    return () => {
      for (const layer of layers) this.#remove(layer)
    }
  }

  /** The latest pending change of a key; undefined when there is none. */
  get(key: string): PendingRecord | undefined {
    return this.#latest.get(key)
  }

  /** Latest pending changes of the keys that begin with `prefix`, in the byte order of the keys. */
  within(prefix: string): PendingRecord[] {
    return [...this.#latest.values()].filter(({ key }) => key.startsWith(prefix)).sort((a, b) => compareKeys(a.key, b.key))
  }

  #remove(layer: Layer): void {
    const latest = this.#latest.get(layer.key)
    if (latest === layer) {
      if (layer.below === undefined) this.#latest.delete(layer.key)
      else this.#latest.set(layer.key, layer.below)
      return
    }
    let above = latest
    while (above !== undefined && above.below !== layer) above = above.below
    if (above !== undefined) above.below = layer.below
  }
}

/** What is stored with what is pending laid over it, both in byte order of the keys. */
export function* overlaid(stored: Iterable<StoredRecord>, pending: readonly PendingRecord[]): Generator<StoredRecord> {
  const changes = pending[Symbol.iterator]()
  let change = changes.next()
  for (const record of stored) {
    while (!change.done && compareKeys(change.value.key, record.key) < 0) {
      yield* present(change.value)
      change = changes.next()
    }
    if (!change.done && change.value.key === record.key) {
      yield* present(change.value)
      change = changes.next()
    } else yield record
  }
  for (; !change.done; change = changes.next()) yield* present(change.value)
}

function present({ key, text }: PendingRecord): StoredRecord[] {
  return text === null ? [] : [{ key, text }]
}
