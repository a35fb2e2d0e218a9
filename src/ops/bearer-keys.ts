/** Bearer keys of a listener, compared so that the time taken says nothing about them. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { ConfigError } from '../protocol/errors.js'

type Compare = (a: Uint8Array, b: Uint8Array) => boolean

/**
 * The keys that a listener accepts. Several keys are valid at once, so that one can be replaced without an outage. No key at
 * all means an open listener, which the configuration allows only where `insecure` is said.
 */
export class BearerKeys {
  readonly #compare: Compare
  #digests: readonly Uint8Array[] = []

  /** `compare` must take the same time for every pair of equal length. Throws ConfigError for an empty key. */
  constructor(keys: readonly string[], compare: Compare = timingSafeEqual) {
    this.#compare = compare
    this.replace(keys)
  }

  get open(): boolean {
    return this.#digests.length === 0
  }

  /** Takes other keys from now on; links that are already open stay. Throws ConfigError for an empty key. */
  replace(keys: readonly string[]): void {
    if (keys.includes('')) throw new ConfigError(['an empty key would let everybody in; leave it out, or give it a value'])
    this.#digests = keys.map(digest)
  }

  /**
   * Whether an `Authorization` header carries one of the keys. Digests of equal length are compared, and every key is
   * compared even after a match, so neither length nor position can be measured.
   */
  accepts(authorization: string): boolean {
    if (this.open) return true
    const given = digest(/^bearer +(.*)$/is.exec(authorization)?.[1]?.trimEnd() ?? '')
    let matches = 0
    for (const known of this.#digests) matches += this.#compare(known, given) ? 1 : 0
    return matches > 0
  }
}

function digest(key: string): Uint8Array {
  return createHash('sha256').update(key).digest()
}
