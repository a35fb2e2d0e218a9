/** Names of files as people may see them: never a path, never a trick. */
import type { FileType } from './stored-file.js'

const MAX_NAME_BYTES = 200
/** Control characters, and the invisible ones that turn the reading direction: "cod.exe" must not read "exe.doc". */
const HIDDEN = /[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\ufeff]/gu

/** The last path part of a name without anything hidden, cut to 200 bytes before its extension; null when nothing is left. */
export function safeFilename(claimed: string | null): string | null {
  const last = (claimed ?? '').toWellFormed().split(/[/\\]/).at(-1) ?? ''
  const shown = last.replace(HIDDEN, '').trim()
  return /^\.*$/.test(shown) ? null : shortened(shown)
}

/** The name of a file that came with none. */
export function standInName(type: FileType, extension: string): string {
  return `${type}.${extension}`
}

/** Cut between code points; a short extension stays. */
function shortened(name: string): string {
  if (Buffer.byteLength(name) <= MAX_NAME_BYTES) return name
  const extension = /\.[A-Za-z0-9]{1,10}$/.exec(name)?.[0] ?? ''
  let stem = ''
  let room = MAX_NAME_BYTES - extension.length
  for (const point of name.slice(0, name.length - extension.length)) {
    room -= Buffer.byteLength(point)
    if (room < 0) break
    stem += point
  }
  return stem + extension
}
