/** What can be waited for at a simulated xAgent. */
import type { JsonObject } from '../protocol/packet.js'
import type { WirePacket } from './wire-packet.js'

/** One `chat.message` frame: a redelivery is one more. */
export interface ReceivedMessage {
  readonly packetId: string
  readonly channelId: string
  readonly messageId: string
  readonly text: string
  readonly files: readonly JsonObject[]
  readonly payload: JsonObject
  /** The envelope's time, Unix ms. */
  readonly time: number | undefined
  /** When it came, Unix ms. */
  readonly at: number
  /** The same `message_id` came before on this channel. */
  readonly repeated: boolean
}

export interface XagentEvents {
  /** Every packet that came. */
  readonly packet: WirePacket
  readonly message: ReceivedMessage
  readonly descriptor: { readonly channelId: string; readonly descriptor: JsonObject }
  readonly error: WirePacket
  readonly closed: { readonly code: number; readonly reason: string }
}
