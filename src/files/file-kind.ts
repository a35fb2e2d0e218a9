/** What a file is: its bytes are asked first, what somebody claims comes second, and nothing is served that a browser runs. */
import { fileTypeFromBuffer } from 'file-type'
import type { FileType } from './stored-file.js'

/** So much of the beginning is looked at. */
export const SAMPLE_BYTES = 4_100
const UNKNOWN = 'application/octet-stream'

export interface FileIs {
  readonly mimeType: string
  readonly type: FileType
  /** Without dot; `bin` where nothing is known. */
  readonly extension: string
}

/** `sample` is the beginning of the file, or all of it. */
export async function fileIs(sample: Uint8Array, claims: { readonly claimedMime: string | null; readonly claimedType: FileType | null }): Promise<FileIs> {
  const claimed = plainMime(claims.claimedMime)
  const sniffed = await sniff(sample)
  if (sniffed !== null) {
    const mimeType = moreExact(sniffed.mime, claimed)
    return isActive(mimeType) ? { mimeType: UNKNOWN, type: 'file', extension: 'bin' } : { mimeType, type: typeOf(mimeType), extension: sniffed.ext }
  }
  return claimedKind(claimed, looksLikeText(sample), claims.claimedType)
}

/** What a file is called of which no byte was seen yet. */
export function claimedIs(claims: { readonly claimedMime: string | null; readonly claimedType: FileType | null }): FileIs {
  return claimedKind(plainMime(claims.claimedMime), true, claims.claimedType)
}

function claimedKind(claimed: string | null, isText: boolean, claimedType: FileType | null): FileIs {
  if (claimed !== null && isActive(claimed)) return { mimeType: UNKNOWN, type: 'file', extension: 'bin' }
  if (claimed?.startsWith('text/') === true) return isText ? { mimeType: 'text/plain', type: 'file', extension: 'txt' } : { mimeType: UNKNOWN, type: 'file', extension: 'bin' }
  // A voice message in a format that nobody knows is still a voice message.
  if (claimed === null || claimed === UNKNOWN) return { mimeType: UNKNOWN, type: claimedType ?? 'file', extension: 'bin' }
  const [, subtype = ''] = claimed.split('/')
  return { mimeType: claimed, type: typeOf(claimed), extension: /^[a-z0-9]{1,8}$/.test(subtype) ? subtype : 'bin' }
}

async function sniff(sample: Uint8Array): Promise<{ readonly mime: string; readonly ext: string } | null> {
  try {
    const found = await fileTypeFromBuffer(sample)
    const mime = plainMime(found?.mime ?? null)
    return found === undefined || mime === null ? null : { mime, ext: found.ext }
  } catch {
    return null
  }
}

/**
 * A container says less than what is in it: the beginning of a document is that of a ZIP file, and a voice message in WebM or
 * MP4 looks like a video. There the claim is taken, where the container allows it.
 */
function moreExact(sniffed: string, claimed: string | null): string {
  if (claimed === null) return sniffed
  if (sniffed === 'application/zip' && /^application\/(vnd\.|epub\+zip$)/.test(claimed)) return claimed
  if (sniffed.startsWith('video/') && claimed === sniffed.replace('video/', 'audio/')) return claimed
  return sniffed
}

/** Lower case, without parameters; null when it is no plausible media type. */
function plainMime(text: string | null): string | null {
  const plain = (text ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  return plain.length <= 127 && /^(application|audio|font|image|model|text|video)\/[a-z0-9][a-z0-9!#$&^_.+-]*$/.test(plain) ? plain : null
}

/** Markup and scripts run where a browser opens them. */
function isActive(mime: string): boolean {
  return /(^text\/html$|[/+]xml|^image\/svg|xhtml|javascript|ecmascript)/.test(mime)
}

function typeOf(mime: string): FileType {
  const [top] = mime.split('/')
  return top === 'image' || top === 'video' || top === 'audio' ? top : 'file'
}

/** No NUL, and at most a few other control characters. */
function looksLikeText(sample: Uint8Array): boolean {
  const controls = sample.reduce((count, byte) => count + (byte < 0x20 && byte !== 9 && byte !== 10 && byte !== 12 && byte !== 13 && byte !== 27 ? 1 : 0), 0)
  return !sample.includes(0) && controls * 100 <= sample.length
}
