/** Base URLs (PROTOCOL "Who dials whom"): http or https, host required, path prefix allowed, nothing else. */
import { z } from 'zod'

/** A Base URL without a trailing slash. What is wrong is not repeated: a URL can hold a password. */
export const baseUrl = (form: string) => z.string(`must be ${form}`).refine(isBaseUrl, `must be ${form}`).transform((url) => url.replace(/\/+$/, ''))

/** Stricter than the URL parser, which mends white space, backslashes and missing slashes. */
function isBaseUrl(text: string): boolean {
  return /^https?:\/\/[^\s\\/?#@]+(\/[^\s\\?#]*)?$/i.test(text) && URL.canParse(text)
}
