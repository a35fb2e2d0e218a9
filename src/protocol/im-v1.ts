/** Reading `message.push` of `xagent.im.v1`: lenient exactly where real connectors deviate (v1 §5, docs/legacy.md). */
import { isObject, type JsonObject } from './packet.js'
import type { ProfileId } from './ids.js'

export const IM_V1 = 'xagent.im.v1' as ProfileId
/** The only `event_kind` that is a user message (v1 §5). */
export const MESSAGE_RECEIVED = 'im.message.received'

/** As many as a final may have (v2 §5 names no number); the words of a push with more go on with the first ones. */
const MAX_FILES = 100

/** A file item in either dialect, as far as the connector said. */
export interface PushFile {
  readonly type: 'image' | 'video' | 'audio' | 'file'
  readonly ref: string
  readonly filename: string | null
  readonly mimeType: string | null
  readonly byteSize: number | null
  /** As the connector gave it, or where its dialect serves the reference; relative to its Base URL or absolute. */
  readonly url: string
}

export interface Push {
  /** The whole payload, for the fields that a preset names. */
  readonly payload: JsonObject
  readonly eventKind: string | null
  /** The user's own words; null when the key is absent (then `text` may serve), "" for a message of files alone. */
  readonly rawText: string | null
  readonly text: string | null
  readonly files: readonly PushFile[]
  /** Wire shapes that differ from the seed, each to be counted: `files_key`, `file_null`, `file_without_ref`, … */
  readonly deviations: readonly string[]
}

/** Reads a push payload. Total: whatever the payload holds, something comes back, and what was odd is named. */
export function readPush(payload: JsonObject): Push {
  const deviations: string[] = []
  const { items, key } = fileList(payload)
  if (key !== null && key !== 'files') deviations.push('files_key')
  if (payload['profile'] !== IM_V1) deviations.push('profile')
  const files: PushFile[] = []
  for (const item of items) {
    if (!isObject(item)) {
      deviations.push('file_null')
      continue
    }
    const file = readFile(item)
    if (file === null) deviations.push('file_without_ref')
    else if (files.length < MAX_FILES) files.push(file)
    else deviations.push('file_lost')
  }
  return {
    payload,
    eventKind: stringOrNull(payload['event_kind']),
    rawText: wordsOf(payload['raw_text'], 'raw_text' in payload),
    text: stringOrNull(payload['text']),
    files,
    deviations,
  }
}

/**
 * The value of a field as text: strings as they are, whole numbers in decimal. Numbers beyond 2^53 have lost digits on the
 * way and count as absent, as does everything else. "reply.tool_id" reads one level down.
 */
export function fieldText(payload: JsonObject, path: string): string | null {
  let value: unknown = payload
  for (const name of path.split('.')) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return null
    value = value[name]
  }
  if (typeof value === 'string') return value
  return Number.isSafeInteger(value) ? String(value) : null
}

function wordsOf(value: unknown, present: boolean): string | null {
  if (typeof value === 'string') return value
  return present ? '' : null
}

function fileList(payload: JsonObject): { items: readonly unknown[]; key: string | null } {
  for (const key of ['files', 'media', 'media_refs']) {
    const value = payload[key]
    if (Array.isArray(value)) return { items: value, key }
  }
  return { items: [], key: null }
}

function readFile(item: JsonObject): PushFile | null {
  const fileRef = stringOrNull(item['file_ref'])
  const ref = fileRef ?? stringOrNull(item['media_ref'])
  if (ref === null || ref === '') return null
  const url = stringOrNull(item['download_url']) || stringOrNull(item['url']) || `/${fileRef === null ? 'media' : 'files'}/refs/${encodeURIComponent(ref.toWellFormed())}`
  const type = stringOrNull(item['type']) ?? stringOrNull(item['media_type'])
  const size = item['byte_size']
  return {
    type: type === 'image' || type === 'video' || type === 'audio' ? type : 'file',
    ref,
    filename: stringOrNull(item['filename']) || null,
    mimeType: stringOrNull(item['mime_type']) || stringOrNull(item['content_type']) || null,
    byteSize: Number.isSafeInteger(size) && (size as number) > 0 ? (size as number) : null,
    url,
  }
}

function stringOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
