/** Durations (`500ms`, `30s`, `5m`, `1h`, `7d`) and sizes (`64KiB`, `8MiB`, `2GiB`) of the configuration, as zod types. */
import { z } from 'zod'

const DURATIONS: ReadonlyMap<string, number> = new Map([['ms', 1], ['s', 1_000], ['m', 60_000], ['h', 3_600_000], ['d', 86_400_000]])
const SIZES: ReadonlyMap<string, number> = new Map([['B', 1], ['KiB', 2 ** 10], ['MiB', 2 ** 20], ['GiB', 2 ** 30]])
const DURATION_FORM = 'a whole number with ms, s, m, h or d, like 30s'
const SIZE_FORM = 'a whole number with B, KiB, MiB or GiB, like 8MiB'

/** A duration in ms, at least `leastMs`. */
export const duration = (leastMs = 1) => quantity(DURATIONS, DURATION_FORM, leastMs, `${leastMs}ms`)
/** A size in bytes, at least `leastBytes`. */
export const size = (leastBytes = 1) => quantity(SIZES, SIZE_FORM, leastBytes, `${leastBytes}B`)
/** A whole number within bounds. */
export function count(least: number, most = 1_000_000_000) {
  const form = `must be a whole number from ${least} to ${most}`
  return z.number(form).int(form).min(least, form).max(most, form)
}

function quantity(units: ReadonlyMap<string, number>, form: string, least: number, leastText: string) {
  return z.string(`must be ${form}`).transform((text, context) => {
    const [, digits, unit] = /^(\d{1,15})([A-Za-z]+)$/.exec(text) ?? []
    const factor = unit === undefined ? undefined : units.get(unit)
    const value = factor === undefined ? NaN : Number(digits) * factor
    if (!Number.isSafeInteger(value)) {
      context.addIssue({ code: 'custom', message: `must be ${form}` })
      return z.NEVER
    }
    if (value < least) {
      context.addIssue({ code: 'custom', message: `must be at least ${leastText}` })
      return z.NEVER
    }
    return value
  })
}
