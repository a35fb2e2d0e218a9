/** A `tool.invoke` on its way through line and link, with those who wait for it. */
import { err } from '../protocol/errors.js'
import type { JsonObject, Packet } from '../protocol/packet.js'
import type { Answer, ToolCall } from './port.js'

export interface QueuedCall {
  readonly call: ToolCall
  readonly done: (answer: Answer) => void
  readonly onLate: (packet: Packet) => void
  readonly onProgress: ((payload: JsonObject) => void) | undefined
}

/** The payload of `tool.invoke`; `tool_call_id` stays the same over retries, for tools that know it. */
export function invokePayload(call: ToolCall): JsonObject {
  return { tool_id: call.toolId, arguments: call.arguments, context: { tool_call_id: call.toolCallId } }
}

/** A call that certainly never left the gateway. */
export function neverSent(): Answer {
  return err({ kind: 'not_connected', sent: false })
}
