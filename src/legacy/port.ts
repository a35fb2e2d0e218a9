/**
 * What a route sees of its legacy connector. The shells behind it (main link, tool links, HTTP) own sockets and timers;
 * the route owns meaning. Everything here is asynchronous by callback, in the order in which it came off the wire.
 */
import type { Packet, JsonObject } from '../protocol/packet.js'
import type { WireError, Result } from '../protocol/errors.js'
import type { LegacyChannelId, LegacyConnectorId, ToolId } from '../protocol/ids.js'
import type { EndCause } from './link-end.js'

/** Callbacks of the main link, in wire order. */
export interface MainLinkEvents {
  /** hello is accepted: the link can be used, nothing is open yet. `deviations` name what the answer lacked. */
  readonly onUp: (hello: { connectorId: LegacyConnectorId | null; protocolVersion: string | null; deviations?: readonly string[] }) => void
  /** The link that was up is gone; pending requests have been answered with `link_lost` before this call. */
  readonly onDown: (reason: string) => void
  /** A packet that answers no pending request of ours (pushes, late answers, unmatched errors). */
  readonly onPacket: (packet: Packet) => void
  /** A frame that is no packet; `bytes` long. */
  readonly onUndecodable: (error: WireError, bytes: number) => void
  /** One dial failed before hello was accepted. */
  readonly onDialFailed: (reason: string, attempt: number, cause: EndCause) => void
}

/** How a request on a legacy link ended. `sent: false` means that it certainly never left the gateway. */
export type RequestFailure =
  | { readonly kind: 'timeout'; readonly sent: true }
  | { readonly kind: 'link_lost'; readonly sent: boolean }
  | { readonly kind: 'not_connected'; readonly sent: false }

/** An answer is the packet, whichever of the two error shapes it has (ack with `error`, or `type:"error"`). */
export type Answer = Result<Packet, RequestFailure>

export interface MainLink {
  readonly up: boolean
  /** Dialling now: neither up nor waiting for the next attempt of a long outage. */
  readonly dialling: boolean
  start(): void
  /** Sends a request and calls back once: with its answer, or with how it failed. `onLate` gets an answer after the timeout. */
  request(type: string, channelId: LegacyChannelId | '', payload: JsonObject, timeoutMs: number, done: (answer: Answer) => void, onLate?: (packet: Packet) => void): void
  /** Sends a packet that is no request of ours (a relayed one); false = it certainly did not leave. */
  send(packet: Packet): boolean
  /** Stops reading the socket, so that the connector sees back-pressure. */
  pause(): void
  resume(): void
  /** Closes for good. */
  close(reason: string): Promise<void>
}

/** One `tool.invoke`. */
export interface ToolCall {
  readonly toolId: ToolId
  readonly channelId: LegacyChannelId
  readonly arguments: JsonObject
  readonly toolCallId: string
  readonly timeoutMs: number
}

export interface ToolLinks {
  /**
   * Runs a call on a free tool link (or the main link, where the connector wants that), waiting in line when all are busy.
   * `done` is called once. `onLate` is called at most once, when the answer comes after `done` said `timeout`.
   * `onProgress` relays `tool.progress.push` of this call.
   */
  invoke(call: ToolCall, done: (answer: Answer) => void, onLate: (packet: Packet) => void, onProgress?: (payload: JsonObject) => void): void
  /** Calls waiting in the gateway, certainly not sent. */
  readonly waiting: number
  readonly running: number
  close(reason: string): Promise<void>
}

/** The legacy connector's HTTP side. Bodies are bounded; nothing of an error body is ever passed on. */
export interface LegacyHttp {
  card(): Promise<Result<JsonObject>>
  /** The Skill's Markdown, or null where the connector has none (204, 404). */
  skill(): Promise<Result<string | null>>
  health(): Promise<Result<JsonObject>>
  close(): Promise<void>
}
