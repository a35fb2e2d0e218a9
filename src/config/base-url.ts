/** Base URLs (PROTOCOL "Who dials whom"): `http|https`, host required, path prefix allowed, nothing else. */

/** What is wrong with a Base URL, never repeating it: it can hold a password. Null when it can be used. */
export function baseUrlProblem(value: string): string | null {
  if (/[\s\\]/.test(value)) return 'holds white space or a backslash'
  if (!/^https?:\/\//i.test(value)) return 'does not start with http:// or https://'
  if (/^https?:\/\/(?:[/?#]|$)/i.test(value)) return 'names no host'
  if (!URL.canParse(value)) return 'is not a URL'
  const url = new URL(value)
  if (url.username !== '' || url.password !== '' || /^https?:\/\/[^/?#]*@/i.test(value)) return 'holds a user name or password'
  if (value.includes('?')) return 'holds a query'
  if (value.includes('#')) return 'holds a fragment'
  return null
}
