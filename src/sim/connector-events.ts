/** What can be waited for at a simulated connector, and what it reports of its own accord. */
import type { JsonObject } from '../protocol/packet.js'
import type { WirePacket } from './wire-packet.js'

export interface ToolCall {
  readonly toolId: string
  readonly channelId: string
  readonly arguments: JsonObject
  readonly context: JsonObject
  readonly requestId: string
  /** When its turn in the read loop came, Unix ms. */
  readonly at: number
  /** The socket it came on. */
  readonly socket: number
}

/** A message that has reached the platform. */
export interface Sent {
  readonly channelId: string
  readonly toolId: string
  /** Whom it reached. */
  readonly to: string
  readonly text: string
  readonly arguments: JsonObject
  readonly at: number
}

/** A push that reached nobody. A push written to a socket that dies unread is lost too, but no connector knows that. */
export interface LostPush {
  readonly channelId: string
  readonly payload: JsonObject
  readonly reason: 'down' | 'closed' | 'queue_full' | 'too_old' | 'flush_ended'
}

export interface ConnectorEvents {
  /** An HTTP request was answered; upgrades that were refused too. */
  readonly http: { readonly method: string; readonly path: string; readonly status: number }
  readonly socket: { readonly socket: number }
  readonly disconnect: { readonly socket: number }
  /** Every packet, when its turn in the read loop came. */
  readonly packet: { readonly socket: number; readonly packet: WirePacket }
  readonly hello: { readonly socket: number; readonly accepted: boolean; readonly payload: JsonObject }
  readonly open: { readonly socket: number; readonly asked: string; readonly channelId: string }
  readonly close: { readonly socket: number; readonly channelId: string }
  readonly tool: ToolCall
  readonly sent: Sent
  /** A file was uploaded for a channel. */
  readonly upload: { readonly channelId: string; readonly ref: string; readonly filename: string; readonly bytes: Buffer; readonly fields: Readonly<Record<string, string>> }
  readonly push: { readonly channelId: string; readonly payload: JsonObject; readonly outcome: 'written' | 'queued' }
  readonly lost: LostPush
}
