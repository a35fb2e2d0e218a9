/**
 * The envelope as other programs write it. The simulators do not use the gateway's own codec: a mistake in that must not hide
 * itself by being made on both sides.
 */
import { randomBytes } from 'node:crypto'
import type { JsonObject } from '../protocol/packet.js'

/** A packet with its wire names; absent fields are not written. */
export interface WirePacket {
  readonly schema?: string
  readonly packet_id: string
  readonly request_id?: string | undefined
  readonly reply_to?: string | undefined
  readonly connector_channel_id?: string | undefined
  readonly type: string
  readonly time?: number
  readonly payload?: JsonObject | undefined
  readonly error?: { readonly code: string; readonly message?: string } | undefined
}

export type PacketFields = Omit<WirePacket, 'packet_id' | 'schema'> & { readonly packet_id?: string }

/** An id as connectors make them: a prefix and base64url. */
export function wireId(prefix: string, bytes = 10): string {
  return prefix + randomBytes(bytes).toString('base64url')
}

/** One complete packet in the recorded field order, with a new `packet_id` unless one is given. */
export function wirePacket(fields: PacketFields, now: number): WirePacket {
  const { packet_id, request_id, reply_to, connector_channel_id, type, time, payload, error } = fields
  return {
    schema: 'xagent.connector.packet/v1',
    packet_id: packet_id ?? wireId('pkt_'),
    ...(request_id !== undefined && { request_id }),
    ...(reply_to !== undefined && { reply_to }),
    ...(connector_channel_id !== undefined && connector_channel_id !== '' && { connector_channel_id }),
    type,
    time: time ?? now,
    ...(payload !== undefined && { payload }),
    ...(error !== undefined && { error }),
  }
}

/** Reads a frame leniently: null when it is not one JSON object with a type. */
export function readWirePacket(text: string): WirePacket | null {
  try {
    const raw: unknown = JSON.parse(text)
    if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return null
    return typeof (raw as WirePacket).type === 'string' ? (raw as WirePacket) : null
  } catch {
    return null
  }
}

/** A field of a payload as a trimmed string; other types count as missing, as in the real connectors. */
export function textField(object: JsonObject | undefined, name: string): string {
  const value = object?.[name]
  return typeof value === 'string' ? value.trim() : ''
}

/** A field of a payload as an object; empty when it is something else. */
export function objectField(object: JsonObject | undefined, name: string): JsonObject {
  const value = object?.[name]
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
}
