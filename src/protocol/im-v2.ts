/** The packets of `xagent.im.v2` (v2 §4-§8): checked in both directions, built in one place. */
import { z } from 'zod'
import { err, ok, wireError, type Result } from './errors.js'
import { MAX_ID_BYTES, type MessageId, type ProfileId } from './ids.js'
import { isObject, type JsonObject } from './packet.js'

export const IM_V2 = 'xagent.im.v2' as ProfileId
/** Fields that must never stand in an IM payload (v2 §3). */
export const FORBIDDEN_FIELDS: readonly string[] = ['session_id', 'user_connector_id', 'user_id', 'connector_id', 'role']

const messageId = z.string().min(1, 'must not be empty').refine((id) => Buffer.byteLength(id) <= MAX_ID_BYTES, `must be at most ${MAX_ID_BYTES} bytes`)
const fileItem = z.object({
  type: z.enum(['image', 'video', 'audio', 'file']),
  file_ref: z.string().min(1).max(MAX_ID_BYTES),
  filename: z.string().optional(),
  mime_type: z.string().optional(),
  byte_size: z.number().int().nonnegative().optional(),
  expires_at: z.number().int().nonnegative().optional(),
  download_url: z.string().optional(),
})
const message = z.object({
  message_id: messageId,
  text: z.string().optional(),
  files: z.array(fileItem).max(100).optional(),
  created_at: z.number().int().nonnegative().optional(),
})
const ack = z.discriminatedUnion('status', [
  z.object({ status: z.literal('accepted'), message_id: messageId }),
  z.object({ status: z.literal('duplicate'), message_id: messageId }),
  z.object({ status: z.literal('rejected'), message_id: messageId, code: z.string().min(1).max(256), message: z.string().optional(), retryable: z.unknown().optional() }),
])
const delta = z.object({ message_id: messageId, sequence: z.number().int().positive(), text: z.string() })
const activity = z.discriminatedUnion('status', [
  z.object({ status: z.literal('thinking'), tool_name: z.undefined().optional() }),
  z.object({ status: z.literal('idle'), tool_name: z.undefined().optional() }),
  z.object({ status: z.literal('tool'), tool_name: z.string().min(1).refine((name) => Buffer.byteLength(name) <= 256, 'must be at most 256 bytes') }),
])

/** The shapes themselves, for packets that cross untranslated. */
export const IM_V2_SHAPES = { message, fileItem, delta, activity } as const

/** A final from xAgent. `unknownFields` were left out and are to be counted. */
export interface FinalMessage {
  readonly messageId: MessageId
  readonly text: string
  readonly files: readonly { readonly type: string; readonly fileRef: string; readonly filename: string | null; readonly byteSize: number | null }[]
  readonly unknownFields: readonly string[]
}

/** What an ack says. `protocolFault`: a rejection without boolean `retryable`, which counts as temporary (DESIGN §4). */
export type AckVerdict =
  | { readonly status: 'accepted' | 'duplicate'; readonly messageId: MessageId }
  | { readonly status: 'rejected'; readonly messageId: MessageId; readonly code: string; readonly retryable: boolean; readonly protocolFault: boolean; readonly saidRetryable: boolean | null }

/** Checks a final (v2 §5). A forbidden field or a wrong shape is `invalid_packet`, naming the field. */
export function parseFinal(payload: JsonObject): Result<FinalMessage> {
  const forbidden = forbiddenIn(payload)
  if (forbidden !== null) return err(wireError('invalid_packet', `${forbidden} must not stand in a chat.message`))
  const parsed = message.safeParse(payload)
  if (!parsed.success) return err(wireError('invalid_packet', problemOf(parsed.error)))
  const { text = '', files = [] } = parsed.data
  if (text.trim() === '' && files.length === 0) return err(wireError('invalid_packet', 'text or files must be non-empty'))
  return ok({
    messageId: parsed.data.message_id as MessageId,
    text,
    files: files.map((file) => ({ type: file.type, fileRef: file.file_ref, filename: file.filename ?? null, byteSize: file.byte_size ?? null })),
    unknownFields: unknownKeys(payload, message),
  })
}

/**
 * What can still be delivered of a final whose shape is wrong (`boundary.mode: observe`): it names its message and says
 * something. Files that do not fit are left out. Forbidden fields hold.
 */
export function salvageFinal(payload: JsonObject): Result<FinalMessage> {
  const text = payload['text']
  const files = Array.isArray(payload['files']) ? payload['files'].filter((file) => fileItem.safeParse(file).success) : []
  return parseFinal({ message_id: payload['message_id'], ...(typeof text === 'string' && { text }), files, ...forbiddenFields(payload) })
}

/** Checks an ack (v2 §7). A malformed one is an error and changes nothing. */
export function parseAck(payload: JsonObject): Result<AckVerdict> {
  const parsed = ack.safeParse(payload)
  if (!parsed.success) return err(wireError('invalid_packet', problemOf(parsed.error)))
  const id = parsed.data.message_id as MessageId
  if (parsed.data.status !== 'rejected') return ok({ status: parsed.data.status, messageId: id })
  const said = typeof parsed.data.retryable === 'boolean' ? parsed.data.retryable : null
  return ok({ status: 'rejected', messageId: id, code: parsed.data.code, retryable: said ?? true, protocolFault: said === null, saidRetryable: said })
}

export function parseDelta(payload: JsonObject): Result<{ messageId: MessageId; sequence: number; text: string }> {
  const forbidden = forbiddenIn(payload)
  if (forbidden !== null) return err(wireError('invalid_packet', `${forbidden} must not stand in a chat.message.delta`))
  const parsed = delta.safeParse(payload)
  if (!parsed.success) return err(wireError('invalid_packet', problemOf(parsed.error)))
  return ok({ messageId: parsed.data.message_id as MessageId, sequence: parsed.data.sequence, text: parsed.data.text })
}

export function parseActivity(payload: JsonObject): Result<{ status: 'thinking' | 'tool' | 'idle'; toolName: string | null }> {
  const forbidden = forbiddenIn(payload)
  if (forbidden !== null) return err(wireError('invalid_packet', `${forbidden} must not stand in a chat.activity`))
  const parsed = activity.safeParse(payload)
  if (!parsed.success) return err(wireError('invalid_packet', problemOf(parsed.error)))
  return ok({ status: parsed.data.status, toolName: parsed.data.tool_name ?? null })
}

/** A file that xAgent may fetch from the gateway. */
export interface MessageFile {
  readonly type: 'image' | 'video' | 'audio' | 'file'
  readonly ref: string | null
  readonly filename: string | null
  readonly mimeType: string | null
  readonly byteSize: number | null
  readonly expiresAt: number | null
}

/** The payload of an inbound `chat.message`: v2 fields only. Files without a reference could not be had and are left out. */
export function messagePayload(message: { messageId: MessageId; text: string; createdAt: number; files?: readonly MessageFile[] }): JsonObject {
  const files = (message.files ?? []).flatMap((file) => (file.ref === null ? [] : [filePayload(file, file.ref)]))
  return {
    message_id: message.messageId, ...(message.text !== '' && { text: message.text }), ...(files.length > 0 && { files }), created_at: message.createdAt,
  }
}

/** The URL is relative to the Base URL; the gateway serves it with and without the connector's name before it (PROTOCOL). */
function filePayload(file: MessageFile, ref: string): JsonObject {
  return {
    type: file.type, file_ref: ref,
    ...(file.filename !== null && { filename: file.filename }), ...(file.mimeType !== null && { mime_type: file.mimeType }),
    ...(file.byteSize !== null && { byte_size: file.byteSize }), ...(file.expiresAt !== null && { expires_at: file.expiresAt }),
    download_url: `/files/refs/${ref}`,
  }
}

/** The payload of an ack for a final. */
export function ackPayload(messageId: MessageId, answer: { status: 'accepted' | 'duplicate' } | { status: 'rejected'; code: string; message?: string; retryable: boolean }): JsonObject {
  if (answer.status !== 'rejected') return { message_id: messageId, status: answer.status }
  return { message_id: messageId, status: 'rejected', code: answer.code, ...(answer.message !== undefined && { message: answer.message }), retryable: answer.retryable }
}

function forbiddenFields(payload: JsonObject): JsonObject {
  const found = forbiddenIn(payload)
  return found === null ? {} : { [found.replace('files[].', '')]: true }
}

/** The first forbidden field at top level or in a file item, or null. */
export function forbiddenIn(payload: JsonObject): string | null {
  const top = FORBIDDEN_FIELDS.find((field) => Object.hasOwn(payload, field))
  if (top !== undefined) return top
  const files = payload['files']
  if (!Array.isArray(files)) return null
  for (const file of files) {
    const found = isObject(file) ? FORBIDDEN_FIELDS.find((field) => Object.hasOwn(file, field)) : undefined
    if (found !== undefined) return `files[].${found}`
  }
  return null
}

function unknownKeys(payload: JsonObject, schema: z.ZodObject): string[] {
  return Object.keys(payload).filter((key) => !Object.hasOwn(schema.shape, key))
}

/** The first problem, as "field: what is wrong". */
export function problemOf(error: z.ZodError): string {
  const issue = error.issues[0]
  if (issue === undefined) return 'the payload does not fit its type'
  return `${issue.path.join('.') || 'payload'}: ${issue.message}`
}
