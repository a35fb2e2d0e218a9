/** `Content-Disposition` of a file that is to be saved, never shown: an ASCII name for old clients, the whole one beside it. */

/** RFC 6266 §5, RFC 5987 §3.2. */
export function attachment(filename: string): string {
  const ascii = filename.replace(/[^\x20-\x7e]|["\\%]/gu, '_')
  const encoded = encodeURIComponent(filename.toWellFormed()).replace(/['()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`
}
