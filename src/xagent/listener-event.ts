/** What happens on the xAgent listener that no route sees: for metrics and logs. */
import type { LinkId, RouteName } from '../protocol/ids.js'

/** Why an upgrade to WebSocket was refused. */
export type UpgradeRefusal = 'unauthorized' | 'foreign_origin' | 'subprotocol' | 'max_links' | 'links_per_ip' | 'shutting_down'
/** Why the listener itself closed a link. */
export type ForcedClose = 'binary_frame' | 'frame_too_large' | 'invalid_packets' | 'rate_limited' | 'hello_timeout' | 'internal_error'

export type ListenerEvent =
  | { readonly kind: 'refused'; readonly route: RouteName; readonly remoteAddress: string; readonly reason: UpgradeRefusal }
  | { readonly kind: 'undecodable'; readonly route: RouteName; readonly link: LinkId; readonly bytes: number }
  | { readonly kind: 'closed'; readonly route: RouteName; readonly link: LinkId; readonly reason: ForcedClose }
  /** A bug of ours, met while serving one request or link; the others go on. */
  | { readonly kind: 'failed'; readonly route: RouteName | null; readonly error: unknown }
