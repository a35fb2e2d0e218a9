/** What is known of a file in the store, and its form on the disk: a JSON sidecar beside the bytes. */
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { ChannelId, RouteName } from '../protocol/ids.js'

/** `staged`: uploaded by xAgent for a channel; `inbound`: sent by a person. */
export type FileKind = 'staged' | 'inbound'
export type FileType = 'image' | 'video' | 'audio' | 'file'

export interface StoredFile {
  /** Unguessable: whoever knows it may read the file until it expires (PROTOCOL: no key is sent for it). */
  readonly ref: string
  readonly route: RouteName
  readonly channelId: ChannelId
  readonly kind: FileKind
  readonly type: FileType
  readonly mimeType: string
  readonly filename: string
  readonly byteSize: number
  /** Hex. */
  readonly sha256: string
  /** Unix ms. */
  readonly expiresAt: number
}

/** A file whose bytes are still with the connector (`files.inbound: lazy`): no size, no hash, type and name as claimed. */
export interface RemoteFile extends StoredFile {
  /** Where they are; whoever remembered the file knows what it means. */
  readonly remote: unknown
}

/** What somebody says about a file before its bytes are seen. */
export interface FileFacts {
  readonly route: RouteName
  readonly channelId: ChannelId
  readonly kind: FileKind
  readonly filename: string | null
  readonly claimedMime: string | null
  readonly claimedType: FileType | null
}

export const isRemote = (file: StoredFile): file is RemoteFile => 'remote' in file

/** `file_` + 192 random bits. */
export const newRef = (): string => `file_${randomBytes(24).toString('base64url')}`

/** The only names the store ever uses in its folder: nothing of them comes from a file's own name. */
export const isRef = (text: string): boolean => /^file_[\w-]{32}$/.test(text)

const VERSION = 1
const sidecar = z.object({
  version: z.literal(VERSION),
  ref: z.string().refine(isRef),
  route: z.string().min(1).transform((name) => name as RouteName),
  channelId: z.string().min(1).transform((id) => id as ChannelId),
  kind: z.enum(['staged', 'inbound']),
  type: z.enum(['image', 'video', 'audio', 'file']),
  mimeType: z.string().min(1),
  filename: z.string().min(1),
  byteSize: z.int().min(0),
  sha256: z.string().regex(/^([0-9a-f]{64})?$/),
  expiresAt: z.int(),
  remote: z.unknown().optional(),
})

export function sidecarText(file: StoredFile): string {
  return JSON.stringify({ version: VERSION, ...file })
}

/** The file that a sidecar describes, or null when it is damaged or belongs to another reference. */
export function readSidecar(text: string, ref: string): StoredFile | RemoteFile | null {
  try {
    const { version: _version, ...file } = sidecar.parse(JSON.parse(text))
    return file.ref === ref ? file : null
  } catch {
    return null
  }
}
