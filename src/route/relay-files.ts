/**
 * What becomes of file references and URLs on their way through the relay. Two hooks of one function each: the file store
 * stands behind them where there is one.
 */
import { ok, type Result } from '../protocol/errors.js'
import type { JsonObject } from '../protocol/packet.js'
import type { Entry } from './channel-table.js'

/** Why a file cannot be handed to the connector; `retry`: it may go better a moment later. */
export interface ForwardFailure {
  readonly code: string
  readonly retry: boolean
}

type Later<T> = T | Promise<T>

export interface RelayFiles {
  /** A URL under which xAgent can fetch this file of the connector's; null = there is none. */
  readonly remember: (entry: Entry, item: JsonObject) => Later<string | null>
  /** The connector's own reference of a file that xAgent has uploaded for the channel. */
  readonly forward: (entry: Entry, ref: string) => Later<Result<string, ForwardFailure>>
}

/** Without a file store: references as they are, and only URLs that do not need the gateway. */
export const UNSTORED_FILES: RelayFiles = {
  remember: (_entry, { download_url: url }) => (typeof url === 'string' && /^https?:\/\//i.test(url) ? url : null),
  forward: (_entry, ref) => ok(ref),
}
