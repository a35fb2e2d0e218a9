/**
 * Kinds of single values, as zod schemas. Their messages read "what is wrong; what would be right"; `{value}` stands for the
 * value, which problem.ts fills in only where it cannot be a secret.
 */
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { baseUrlProblem } from './base-url.js'
import { DURATION_FORM, SIZE_FORM, parseDuration, parseSize } from './units.js'

/** A timer of the runtime reaches 24.8 days; what only compares times may be longer. */
const LONGEST_TIMER = '24d'
const MAX_COUNT = 1_000_000_000

type Complaint = (issue: { readonly input?: unknown }) => string

/** The message of a value that is missing or not what it must be. */
export const mustBe = (form: string): Complaint => (issue) => (issue.input === undefined ? `is missing; must be ${form}` : `{value} is not allowed; must be ${form}`)

export interface Bounds {
  readonly min?: string
  readonly max?: string
}

/** A duration in ms, inside its bounds (both inclusive). */
export function duration(bounds: Bounds = {}) {
  return withUnit(parseDuration, DURATION_FORM, { min: '1ms', max: LONGEST_TIMER, ...bounds })
}

/** A size in bytes, inside its bounds (both inclusive). */
export function size(bounds: Bounds = {}) {
  return withUnit(parseSize, SIZE_FORM, { min: '1B', max: '1024GiB', ...bounds })
}

function withUnit(parse: (text: string) => number | null, form: string, { min, max }: Required<Bounds>) {
  const least = parse(min) ?? 0
  const most = parse(max) ?? 0
  return z.string({ error: mustBe(form) }).transform((text, context) => {
    const value = parse(text)
    if (value !== null && value >= least && value <= most) return value
    const right = value === null ? form : `from ${min} to ${max}`
    context.issues.push({ code: 'custom', input: text, message: `{value} is not allowed; must be ${right}` })
    return z.NEVER
  })
}

export function count(min: number, max = MAX_COUNT) {
  const error = mustBe(`a whole number from ${min} to ${max}`)
  return z.number({ error }).refine((value) => Number.isInteger(value) && value >= min && value <= max, { error })
}

export const flag = () => z.boolean({ error: mustBe('true or false') })

export const choice = <const Values extends readonly [string, ...string[]]>(...values: Values) => z.enum(values, { error: mustBe(values.join(' or ')) })

export function text(form = 'a text') {
  const error = mustBe(form)
  return z.string({ error }).min(1, { error })
}

/** A list of texts; one text alone is refused, so that a forgotten bracket does not go unseen. */
export const texts = (form = 'a list of texts') => z.array(text(), { error: mustBe(form) })

/** A secret that goes into an HTTP header. "" counts as none, as an empty environment variable does. */
export function credential() {
  const error = 'holds characters that an HTTP header cannot carry; must be printable ASCII without spaces'
  return z.string({ error: mustBe('a text') }).regex(/^[\x21-\x7e]*$/, { error })
}

/** One secret, or null for none. */
export const optionalCredential = () => credential().nullable().transform((value) => value || null)

/** An address that xAgent or the gateway dials (PROTOCOL "Who dials whom"); without a trailing slash. */
export function baseUrl() {
  const form = 'http:// or https://, a host, and at most a path'
  return z.string({ error: mustBe(form) }).transform((value, context) => {
    const problem = baseUrlProblem(value)
    if (problem === null) return new URL(value).href.replace(/\/+$/, '')
    context.issues.push({ code: 'custom', input: value, message: `${problem}; must be ${form}` })
    return z.NEVER
  })
}

/** A file that must be readable now: its path and its text. Relative paths start at the working directory. */
export function textFile() {
  return text('the path of a file').transform((path, context) => {
    const content = readText(path)
    if (content.ok) return { path, content: content.text }
    context.issues.push({ code: 'custom', input: path, message: `the file cannot be read (${content.code}); must be the path of a readable file` })
    return z.NEVER
  })
}

/** The text of a file, or the system's error code. */
export function readText(path: string): { readonly ok: true; readonly text: string } | { readonly ok: false; readonly code: string } {
  try {
    return { ok: true, text: readFileSync(path, 'utf8') }
  } catch (error) {
    return { ok: false, code: (error as NodeJS.ErrnoException).code ?? 'unknown error' }
  }
}
