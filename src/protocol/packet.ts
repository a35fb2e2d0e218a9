/** The envelope `xagent.connector.packet/v1` (PROTOCOL "Envelope"): decoding, encoding, and nothing about payloads. */
import { PACKET_SCHEMA } from './version.js'
import { err, ok, wireError, type Result, type WireError } from './errors.js'
import { MAX_ID_BYTES, type PacketId, type RequestId } from './ids.js'

/** A JSON object as it came from the wire: own keys only, nothing known about the values. */
export type JsonObject = { readonly [key: string]: unknown }

export interface Packet {
  readonly packetId: PacketId
  readonly requestId?: RequestId
  readonly replyTo?: PacketId
  /** Still a plain string: which side's channel id it is, only the receiver knows. */
  readonly channelId?: string
  readonly type: string
  /** Unix ms. */
  readonly time?: number
  readonly payload: JsonObject
  readonly error?: WireError
}

/** A refused frame: the error to answer with, and the `request_id` to return when it could still be read. */
export interface Undecodable extends WireError {
  readonly requestId?: RequestId
  readonly packetId?: PacketId
}

/**
 * Decodes one text frame. Never throws: invalid JSON, nesting too deep for the parser, wrong types and over-long ids all
 * come back as `invalid_packet` with what is wrong. Unknown envelope fields are ignored (PROTOCOL: unknown fields ignored).
 */
export function decodePacket(text: string): Result<Packet, Undecodable> {
  let raw: unknown
  try {
    raw = JSON.parse(text)
  } catch {
    return err(wireError('invalid_packet', 'the frame is not valid JSON'))
  }
  if (!isObject(raw)) return err(wireError('invalid_packet', 'the frame must hold one JSON object'))
  const problem = envelopeProblem(raw)
  if (problem !== null) {
    return err({
      ...wireError('invalid_packet', problem),
      ...(isId(raw['request_id']) && { requestId: raw['request_id'] as RequestId }),
      ...(isId(raw['packet_id']) && { packetId: raw['packet_id'] as PacketId }),
    })
  }
  const error = raw['error'] as { code: string; message?: string } | undefined | null
  return ok({
    packetId: raw['packet_id'] as PacketId,
    ...(isId(raw['request_id']) && { requestId: raw['request_id'] as RequestId }),
    ...(isId(raw['reply_to']) && { replyTo: raw['reply_to'] as PacketId }),
    ...(isId(raw['connector_channel_id']) && { channelId: raw['connector_channel_id'] }),
    type: raw['type'] as string,
    ...(typeof raw['time'] === 'number' && { time: raw['time'] }),
    payload: (raw['payload'] ?? {}) as JsonObject,
    ...(error && { error: { code: error.code, ...(error.message !== undefined && { message: error.message }) } }),
  })
}

/** Encodes a packet as one text frame; the inverse of `decodePacket` for every packet the gateway makes. */
export function encodePacket(packet: Packet): string {
  return JSON.stringify({
    schema: PACKET_SCHEMA,
    packet_id: packet.packetId,
    request_id: packet.requestId,
    reply_to: packet.replyTo,
    connector_channel_id: packet.channelId,
    type: packet.type,
    time: packet.time,
    payload: packet.payload,
    error: packet.error,
  })
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A non-empty string that is short enough to be an id. */
export function isId(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && Buffer.byteLength(value) <= MAX_ID_BYTES
}

/**
 * Whether a value nests at most `levels` deep. Values that are passed on as they are (tool arguments, results) must be
 * checked first, since encoding them again is recursive.
 */
export function nestsAtMost(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (levels === 0) return false
  return Object.values(value).every((inner) => nestsAtMost(inner, levels - 1))
}

function envelopeProblem(raw: JsonObject): string | null {
  if (raw['schema'] !== PACKET_SCHEMA) return `schema must be "${PACKET_SCHEMA}"`
  if (!isId(raw['packet_id'])) return `packet_id must be a non-empty string of at most ${MAX_ID_BYTES} bytes`
  if (!isId(raw['type'])) return 'type must be a non-empty string'
  for (const field of ['request_id', 'reply_to', 'connector_channel_id']) {
    const value = raw[field]
    if (value !== undefined && value !== null && value !== '' && !isId(value)) return `${field} must be a string of at most ${MAX_ID_BYTES} bytes`
  }
  const time = raw['time']
  if (time !== undefined && time !== null && !(Number.isSafeInteger(time) && (time as number) >= 0)) return 'time must be an integer of Unix milliseconds'
  const payload = raw['payload']
  if (payload !== undefined && payload !== null && !isObject(payload)) return 'payload must be an object'
  const error = raw['error']
  if (error !== undefined && error !== null) {
    if (!isObject(error) || typeof error['code'] !== 'string' || error['code'] === '') return 'error must be an object with a code'
    if (error['message'] !== undefined && typeof error['message'] !== 'string') return 'error.message must be a string'
  }
  return null
}
