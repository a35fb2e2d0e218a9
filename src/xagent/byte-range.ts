/** `Range` of a request (RFC 9110 §14): one range of bytes; anything else is as if it were not there. */

/** Both ends included; `unsatisfiable`: it begins behind the end. */
export type ByteRange = { readonly start: number; readonly end: number } | 'all' | 'unsatisfiable'

export function byteRange(header: string, size: number): ByteRange {
  const [, from = '', to = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header.replace(/\s/g, '')) ?? []
  if (from === '' && to === '') return 'all'
  if (from === '') return Number(to) === 0 ? 'unsatisfiable' : { start: Math.max(0, size - Number(to)), end: size - 1 }
  if (to !== '' && Number(to) < Number(from)) return 'all'
  if (Number(from) >= size) return 'unsatisfiable'
  return { start: Number(from), end: to === '' ? size - 1 : Math.min(Number(to), size - 1) }
}
