/** What a key may be, and how keys sort: the part of the port that every store must agree on to the byte. */

/** Longest key, in UTF-8 bytes. */
export const MAX_KEY_BYTES = 1_500

/** Throws RangeError for a key that no store can keep apart from others: keys are made in core/record, so that is our own bug. */
export function checkKey(key: string): void {
  if (key === '') throw new RangeError('a key must not be empty')
  if (!key.isWellFormed()) throw new RangeError('a key must not hold half a surrogate pair: UTF-8 has no bytes for it')
  const bytes = Buffer.byteLength(key)
  if (bytes > MAX_KEY_BYTES) throw new RangeError(`a key of ${bytes} bytes is longer than ${MAX_KEY_BYTES}`)
}

/** Negative, 0 or positive, by the bytes of the UTF-8 form. Differs from `<` where one key has a character above U+FFFF. */
export function compareKeys(a: string, b: string): number {
  const shared = Math.min(a.length, b.length)
  for (let i = 0; i < shared; i += 1) {
    const difference = rank(a.charCodeAt(i)) - rank(b.charCodeAt(i))
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

/** Surrogates stand for characters behind all others, yet their code units lie before U+E000. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}
