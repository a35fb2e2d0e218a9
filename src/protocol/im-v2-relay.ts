/**
 * Payloads of `xagent.im.v2` that cross untranslated (DESIGN §6). In either mode only known fields with plain values cross and
 * a forbidden field holds the packet back; `observe` lets through what is wrong in shape alone.
 */
import { err, ok, wireError, type Result } from './errors.js'
import type { PacketDirection } from './catalog.js'
import type { MessageId } from './ids.js'
import { IM_V2_SHAPES, forbiddenIn, parseAck, problemOf } from './im-v2.js'
import { isId, isObject, type JsonObject } from './packet.js'
import { scrub } from './redact.js'
import type { z } from 'zod'

/** `deviations` are to be counted, whatever the result. */
export interface CheckedPayload {
  readonly result: Result<JsonObject>
  readonly deviations: readonly string[]
}

export type CheckedAck =
  | { readonly ok: true; readonly payload: JsonObject; readonly deviations: readonly string[] }
  | { readonly ok: false; readonly reason: 'malformed' | 'other_message'; readonly deviations: readonly string[] }

const { message, fileItem, delta, activity } = IM_V2_SHAPES
const MESSAGE_FIELDS = Object.keys(message.shape)
const FILE_FIELDS = Object.keys(fileItem.shape)
const DELTA_FIELDS = Object.keys(delta.shape)
const ACTIVITY_FIELDS: readonly string[] = ['status', 'tool_name']
const ACK_FIELDS: readonly string[] = ['message_id', 'status', 'code', 'message', 'retryable']
const MAX_CODE = 128

/** A complete message (v2 §5). Towards xAgent every file needs a `download_url`; towards the connector none crosses. */
export function checkMessage(payload: JsonObject, direction: PacketDirection, observe: boolean): CheckedPayload {
  const inbound = direction === 'connector_to_xagent'
  const files = Array.isArray(payload['files']) ? payload['files'].filter(isObject) : null
  const kept: JsonObject = {
    ...plain(payload, MESSAGE_FIELDS),
    ...(files !== null && { files: files.map((file) => keptFile(file, inbound)) }),
  }
  const says = (typeof kept['text'] === 'string' && kept['text'] !== '') || (files ?? []).length > 0
  const problem = shapeProblem(message, payload) ?? filesProblem(files ?? [], inbound) ?? (says ? null : 'text or files must be non-empty')
  const unknown = [...unknownFields(payload, MESSAGE_FIELDS), ...(files ?? []).flatMap((file) => unknownFields(file, FILE_FIELDS))]
  return checked('chat.message', payload, kept, { problem, deviation: 'message_invalid', unknown, forwardable: isId(payload['message_id']) && says, observe })
}

/** A delta towards the connector (v2 §6). */
export function checkDelta(payload: JsonObject, observe: boolean): CheckedPayload {
  const facts = { problem: shapeProblem(delta, payload), deviation: 'delta_invalid', unknown: unknownFields(payload, DELTA_FIELDS), forwardable: isId(payload['message_id']), observe }
  return checked('chat.message.delta', payload, plain(payload, DELTA_FIELDS), facts)
}

/** A snapshot towards the connector (v2 §8). */
export function checkActivity(payload: JsonObject, observe: boolean): CheckedPayload {
  const facts = { problem: shapeProblem(activity, payload), deviation: 'activity_invalid', unknown: unknownFields(payload, ACTIVITY_FIELDS), forwardable: typeof payload['status'] === 'string', observe }
  return checked('chat.activity', payload, plain(payload, ACTIVITY_FIELDS), facts)
}

/** An ack (v2 §7) of the message `of`. Its words cross without anything secret. */
export function checkAck(payload: JsonObject, of: MessageId, observe: boolean): CheckedAck {
  const verdict = parseAck(payload)
  const forbidden = forbiddenIn(payload) === null ? [] : ['forbidden_field']
  if (!verdict.ok) {
    const deviations = ['ack_malformed', ...forbidden]
    const id = payload['message_id']
    if (!observe || typeof payload['status'] !== 'string') return { ok: false, reason: 'malformed', deviations }
    return id === undefined || id === of ? { ok: true, payload: scrubbed(plain(payload, ACK_FIELDS)), deviations } : { ok: false, reason: 'other_message', deviations }
  }
  if (verdict.value.messageId !== of) return { ok: false, reason: 'other_message', deviations: forbidden }
  if (verdict.value.status !== 'rejected') return { ok: true, payload: plain(payload, ['message_id', 'status']), deviations: forbidden }
  const { retryable, protocolFault } = verdict.value
  const kept = plain(payload, ACK_FIELDS)
  return {
    ok: true, payload: scrubbed(observe ? kept : { ...kept, retryable }), deviations: [...forbidden, ...(protocolFault ? ['ack_without_retryable'] : [])],
  }
}

/** An error's code and words, fit for the other side. */
export function relayedError(error: { readonly code: string; readonly message?: string } | undefined): { code: string; message?: string } {
  const { code = 'unnamed_error', message: words } = error ?? {}
  return { code: stableCode(code), ...(words !== undefined && { message: scrub(words) }) }
}

interface Facts {
  readonly problem: string | null
  readonly deviation: string
  readonly unknown: readonly string[]
  /** Whether the other side could make anything of it. */
  readonly forwardable: boolean
  readonly observe: boolean
}

function checked(type: string, payload: JsonObject, kept: JsonObject, { problem, deviation, unknown, forwardable, observe }: Facts): CheckedPayload {
  const forbidden = forbiddenIn(payload)
  if (forbidden !== null) return refused(`${forbidden} must not stand in a ${type}`, 'forbidden_field')
  if (problem !== null && !(observe && forwardable)) return refused(problem, deviation)
  return { result: ok(kept), deviations: [...(problem === null ? [] : [deviation]), ...unknown.map(() => 'unknown_field')] }
}

function refused(problem: string, deviation: string): CheckedPayload {
  return { result: err(wireError('invalid_packet', problem)), deviations: [deviation] }
}

function shapeProblem(schema: z.ZodType, payload: JsonObject): string | null {
  const parsed = schema.safeParse(payload)
  return parsed.success ? null : problemOf(parsed.error)
}

function filesProblem(files: readonly JsonObject[], inbound: boolean): string | null {
  const refs = files.map((file) => file['file_ref'])
  if (new Set(refs).size !== refs.length) return 'files: each file_ref must be unique in its message'
  if (inbound && files.some((file) => !isFetchable(file['download_url']))) return 'files: download_url must be an HTTP(S) URL or a relative one'
  return null
}

/** A URL that can be fetched and names no credentials: those are never passed on. */
function isFetchable(url: unknown): boolean {
  if (typeof url !== 'string' || url === '' || !URL.canParse(url, 'http://relative.invalid')) return false
  const { protocol, username, password } = new URL(url, 'http://relative.invalid')
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === ''
}

function keptFile(file: JsonObject, inbound: boolean): JsonObject {
  const { download_url: url, ...kept } = plain(file, FILE_FIELDS)
  return inbound && isFetchable(url) ? { ...kept, download_url: url } : kept
}

/** Known fields that hold a text, a number or a boolean: nothing nested crosses unseen. */
function plain(payload: JsonObject, fields: readonly string[]): JsonObject {
  return Object.fromEntries(fields.filter((field) => Object.hasOwn(payload, field) && ['string', 'number', 'boolean'].includes(typeof payload[field])).map((field) => [field, payload[field]]))
}

function unknownFields(payload: JsonObject, fields: readonly string[]): string[] {
  return Object.keys(payload).filter((field) => !fields.includes(field))
}

function scrubbed(ack: JsonObject): JsonObject {
  const { code, message: words } = ack
  return { ...ack, ...(typeof code === 'string' && { code: stableCode(code) }), ...(typeof words === 'string' && { message: scrub(words) }) }
}

/** Stable codes pass as they are; one that is no code may hold a secret. */
function stableCode(code: string): string {
  return scrub(code, MAX_CODE) || 'unnamed_error'
}
