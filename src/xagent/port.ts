/**
 * What the xAgent listener asks of a route, and what a route may do with a link. The listener owns sockets, keys, limits and
 * framing; the route owns meaning.
 */
import type { Packet } from '../protocol/packet.js'
import type { ChannelId, LinkId, RouteName } from '../protocol/ids.js'

/** One xAgent WebSocket. Every method may be called at any time; on a closed link they do nothing. */
export interface XagentLink {
  readonly id: LinkId
  readonly remoteAddress: string
  /**
   * Queues one packet. `queued`: it is on its way; `full`: the link's buffer is full and the packet was NOT sent (try again
   * after `onDrain`); `too_large`: it exceeds the frame limit; `closed`: the link is gone.
   */
  send(packet: Packet): 'queued' | 'full' | 'too_large' | 'closed'
  /** `connector.hello` was accepted: the link is no longer closed by `limits.hello_timeout`. */
  helloDone(): void
  /** Closes with a WebSocket code and a reason of at most 123 bytes. */
  close(code: number, reason: string): void
}

/** What a listener calls on a route. Calls for one link come in wire order; `onLinkClosed` is the last. */
export interface NorthRoute {
  readonly name: RouteName
  /** `GET /<name>/connector-card.json`; null body = not known yet, answered 503 with the reason. */
  card(): HttpBody
  skill(): HttpBody & { readonly headers?: Readonly<Record<string, string>> }
  health(): HttpBody
  /** The channel of this id, if it is one of the route's: files are uploaded for a channel. */
  ownsChannel(id: string): ChannelId | null
  onLinkOpened(link: XagentLink): void
  /**
   * One decoded packet. Answers whether it was an ack that matched an open transmission: those do not count against
   * `limits.packets_per_second`.
   */
  onPacket(link: XagentLink, packet: Packet): { readonly countsAgainstLimit: boolean }
  /** The link's buffer has room again after a `full`. */
  onDrain(link: XagentLink): void
  onLinkClosed(link: XagentLink): void
}

export type HttpBody =
  | { readonly status: 200; readonly contentType: string; readonly body: string }
  | { readonly status: 204 | 404 | 503; readonly reason: string }
