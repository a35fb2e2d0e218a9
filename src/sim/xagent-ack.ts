/** How a simulated xAgent answers a `chat.message`: as it should (v2 §7), or in one of the ways that must do no harm. */
import type { JsonObject } from '../protocol/packet.js'
import type { ReceivedMessage } from './xagent-events.js'
import type { PacketFields } from './wire-packet.js'

export type AckPolicy =
  /** Taken; a `message_id` that was taken before is answered `duplicate`. */
  | 'accepted'
  | 'duplicate'
  /** Not taken, and no answer. */
  | 'none'
  /** Taken, but the ack is lost on the way. */
  | 'swallowed'
  /** An ack whose payload makes no sense. */
  | 'malformed'
  | { readonly kind: 'rejected'; readonly code: string; readonly retryable?: unknown; readonly message?: string }
  /** `accepted`, but for another packet, channel or message. */
  | { readonly kind: 'wrong'; readonly replyTo?: string; readonly channelId?: string; readonly messageId?: string }
  /** A packet of `type:"error"` that answers the message. */
  | { readonly kind: 'error'; readonly code: string }
  /** These frames and nothing else: text as it is, anything else as JSON. */
  | { readonly kind: 'raw'; readonly frames: readonly unknown[] }

export type MessagePolicy = (message: ReceivedMessage) => AckPolicy | Promise<AckPolicy>

/** Whether this answer means that xAgent has the message from now on. */
export function takes(policy: AckPolicy): boolean {
  return policy === 'accepted' || policy === 'swallowed' || policy === 'duplicate'
}

/** The frames to send; `known` = the `message_id` was taken before. */
export function ackFrames(policy: AckPolicy, message: ReceivedMessage, known: boolean): readonly (PacketFields | string)[] {
  if (typeof policy === 'string') return namedAck(policy, message, known)
  switch (policy.kind) {
    case 'rejected': {
      const { code, retryable, message: words } = policy
      return [ack(message, {
        message_id: message.messageId, status: 'rejected', code,
        ...(retryable !== undefined && { retryable }), ...(words !== undefined && { message: words }),
      })]
    }
    case 'wrong': {
      const payload = { message_id: policy.messageId ?? message.messageId, status: 'accepted' }
      return [{
        ...ack(message, payload),
        reply_to: policy.replyTo ?? message.packetId,
        connector_channel_id: policy.channelId ?? message.channelId,
      }]
    }
    case 'error':
      return [{
        type: 'error', reply_to: message.packetId, connector_channel_id: message.channelId,
        error: { code: policy.code, message: 'as scripted' },
      }]
    case 'raw': return policy.frames.map((frame) => (typeof frame === 'string' ? frame : JSON.stringify(frame)))
  }
}

function namedAck(policy: Extract<AckPolicy, string>, message: ReceivedMessage, known: boolean): readonly PacketFields[] {
  switch (policy) {
    case 'accepted': return [ack(message, { message_id: message.messageId, status: known ? 'duplicate' : 'accepted' })]
    case 'duplicate': return [ack(message, { message_id: message.messageId, status: 'duplicate' })]
    case 'malformed': return [ack(message, { message_id: 42, status: 'perhaps' })]
    case 'none':
    case 'swallowed': return []
  }
}

function ack(message: ReceivedMessage, payload: JsonObject): PacketFields {
  return { type: 'chat.message.ack', reply_to: message.packetId, connector_channel_id: message.channelId, payload }
}
