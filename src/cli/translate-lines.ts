/** Lines of a stream, each with its number and none longer than a bound: what comes in is never held as a whole. */

/** Longest line that is read, in bytes: the largest frame of a legacy link. */
export const MAX_LINE_BYTES = 16 * 2 ** 20

export type Line = { readonly number: number; readonly text: string } | { readonly number: number; readonly problem: string }

const NEWLINE = 0x0a

/**
 * Splits bytes at line feeds. A line that is too long or not UTF-8 comes back as a problem, without its bytes; the ones behind
 * it are read all the same. Numbers count from 1, blank lines included, though these are left out.
 */
export async function* linesOf(input: AsyncIterable<Uint8Array>, maxBytes = MAX_LINE_BYTES): AsyncGenerator<Line> {
  let number = 1
  let parts: Uint8Array[] = []
  let bytes = 0
  const add = (part: Uint8Array): void => {
    bytes += part.length
    if (bytes <= maxBytes) parts.push(part)
    else parts = []
  }
  const finish = (): Line | null => {
    const line = bytes > maxBytes ? { number, problem: `longer than ${maxBytes} bytes; must be one packet within a frame of that size` } : read(number, Buffer.concat(parts))
    number += 1
    parts = []
    bytes = 0
    return line
  }
  for await (const chunk of input) {
    let from = 0
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      add(chunk.subarray(from, at))
      from = at + 1
      const line = finish()
      if (line !== null) yield line
    }
    if (from < chunk.length) add(chunk.subarray(from))
  }
  const last = finish()
  if (last !== null) yield last
}

/** Null for a blank line. */
function read(number: number, bytes: Uint8Array): Line | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes).trim()
    return text === '' ? null : { number, text }
  } catch {
    return { number, problem: 'not UTF-8; must be UTF-8 text' }
  }
}
