/** Units of the configuration (DESIGN §8): durations such as `500ms`, `30s`, `1h`, sizes such as `8MiB`. */

const DURATION_MS: ReadonlyMap<string, number> = new Map([['ms', 1], ['s', 1_000], ['m', 60_000], ['h', 3_600_000], ['d', 86_400_000]])
const SIZE_BYTES: ReadonlyMap<string, number> = new Map([['B', 1], ['KiB', 1_024], ['MiB', 1_048_576], ['GiB', 1_073_741_824]])

export const DURATION_FORM = 'a whole number with ms, s, m, h or d, such as 30s'
export const SIZE_FORM = 'a whole number with B, KiB, MiB or GiB, such as 8MiB'

/** Milliseconds; null when the text is no duration. */
export const parseDuration = (text: string): number | null => parseWithUnit(text, DURATION_MS)

/** Bytes; null when the text is no size. */
export const parseSize = (text: string): number | null => parseWithUnit(text, SIZE_BYTES)

function parseWithUnit(text: string, units: ReadonlyMap<string, number>): number | null {
  const [, digits, unit] = /^(\d{1,12})([A-Za-z]+)$/.exec(text) ?? []
  const factor = unit === undefined ? undefined : units.get(unit)
  if (digits === undefined || factor === undefined) return null
  const value = Number(digits) * factor
  return Number.isSafeInteger(value) ? value : null
}
