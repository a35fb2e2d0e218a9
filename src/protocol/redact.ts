/**
 * Error texts of connectors and platforms, made fit for logs, acks and results. Telegram's network errors carry the bot
 * token in the URL, Feishu's carry headers and bodies, WeChat's signed URLs and file paths (docs/legacy.md). What looks like a
 * secret goes, at the price of some harmless words: these texts are read by people, nothing is decided by them.
 */

/** Takes a text of unknown origin, returns one line of at most `maxLength` UTF-16 units without anything secret. */
export type Scrub = (text: string, maxLength?: number) => string

export const REDACTED = '[redacted]'
const DEFAULT_MAX_LENGTH = 300
/** More is never shown, and the patterns need not run over megabytes. */
const MAX_INPUT_LENGTH = 4096
/** Shorter secrets would blank out ordinary words. */
const MIN_SECRET_LENGTH = 4

type Rule = readonly [pattern: RegExp, replacement: string | ((match: string, ...groups: string[]) => string)]

/** A name that tells of a secret, then what it holds: quoted, bracketed, or up to the next blank. */
const NAMED_SECRET = new RegExp(
  [
    /(?<![\w.-])(\\?["']?)/, // \1: the quote around the name
    /((?=[\w.-]*(?:token|secret|passw|pwd|key|authorization|aes|signature|sig|credential|cookie|ticket|nonce))[\w.-]+)\1/,
    /(\s*(?:=>|[:=])\s*)/,
    /(?:"(?:[^"\\]|\\.)*"?|'[^']*'?|\\".*?(?:\\"|$)|\[[^\]]*\]?|[^\s"]+)/,
  ].map(({ source }) => source).join(''),
  'gi',
)

/** In this order: what hides the most first, so that later rules cannot leave half of it behind. */
const RULES: readonly Rule[] = [
  // Everything after the start of a header map or a body: both nest, and neither has an end that could be trusted.
  [/\b(\w*headers?\s*[:=]\s*)?map\[.*$/is, `$1map${REDACTED}`],
  [/\b(body\s*[:=]).*$/is, `$1 ${REDACTED}`],
  [/\b([a-z][a-z0-9+.-]{1,15}):\\?\/\\?\/([^\s"<>`]*)/gi, (_match, scheme = '', rest = '') => `${scheme}://${hostOf(rest)}`],
  [/\?[\w.%~[\]-]+=[^\s"<>]*/g, '?…'],
  [/\bbot\d+(?::|%3a)[\w-]+/gi, `bot${REDACTED}`],
  [/\d{5,}(?::|%3a)[\w-]{8,}/gi, REDACTED],
  [/\b(bearer|basic)(\s+)[^\s",;]+/gi, `$1$2${REDACTED}`],
  [NAMED_SECRET, `$1$2$1$3${REDACTED}`],
  [/(?<![\w/.:…])(?:~|\.{1,2})?(?:\/[\w.@%+~=-]+){2,}\/?/g, REDACTED],
  [/\b[a-z]:\\[^\s"']+/gi, REDACTED],
  [/[A-Za-z0-9+/_=-]{32,}/g, (run) => (isPlainWords(run) ? run : REDACTED)],
]

/** `scrub` that knows no configured secrets: shapes only. */
export const scrub: Scrub = scrubber([])

/** A `Scrub` that also replaces these secrets wherever they stand, plain, percent-encoded or in base64. */
export function scrubber(secrets: readonly string[]): Scrub {
  const literals = secrets
    .filter((secret) => secret.length >= MIN_SECRET_LENGTH)
    .flatMap((secret) => [secret, encodeURIComponent(secret.toWellFormed()), JSON.stringify(secret).slice(1, -1), base64(secret)])
    .sort((a, b) => b.length - a.length)
  return (text, maxLength = DEFAULT_MAX_LENGTH) => {
    let line = text
    for (const literal of literals) line = line.replaceAll(literal, REDACTED)
    line = bounded(line.toWellFormed()).replace(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu, ' ')
    for (const [pattern, replacement] of RULES) line = line.replace(pattern, replacement as (match: string) => string)
    return truncated(line.replace(/ {2,}/g, ' ').trim(), maxLength)
  }
}

/** Cuts off what is too long, together with the word that the cut would leave half of a secret of. */
function bounded(text: string): string {
  return text.length <= MAX_INPUT_LENGTH ? text : `${text.slice(0, MAX_INPUT_LENGTH).replace(/\S*$/, '')}…`
}

function truncated(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text
  const cut = text.slice(0, maxLength - 1)
  return `${cut.isWellFormed() ? cut : cut.slice(0, -1)}…`
}

/** The host of what follows `scheme://`, if it surely is one: with an `@` further on it could be the start of a password. */
function hostOf(rest: string): string {
  const [authority = ''] = rest.split(/[/?#\\]/, 1)
  const host = authority.slice(authority.lastIndexOf('@') + 1)
  const after = rest.slice(authority.length)
  if (after.includes('@') || !/^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?[,;:.)'\]]*$/i.test(host)) return '…'
  return after === '' ? host : `${host}/…`
}

/** Codes and names such as `connector_channel_connector_mismatch` are long, too. */
function isPlainWords(run: string): boolean {
  return /^[a-z]{1,15}(?:[_/-][a-z]{1,15})+$/.test(run)
}

function base64(secret: string): string {
  return Buffer.from(secret).toString('base64')
}
