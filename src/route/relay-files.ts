/**
 * What becomes of file references and URLs on their way through the relay. Two hooks of one function each: the file store
 * stands behind them where there is one.
 */
import { ok, type Result } from '../protocol/errors.js'
import type { JsonObject } from '../protocol/packet.js'
import type { Entry } from './channel-table.js'
import type { RouteFiles } from './context.js'
import type { FileSender } from './file-sender.js'
import type { RouteName } from '../protocol/ids.js'

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

/**
 * With the file store: what stands under the connector's own address is fetched through the gateway when xAgent asks for it, and
 * uploads are handed on when their message goes. An absolute URL of another host is xAgent's to fetch (v2 §5).
 */
export function storedFiles(route: RouteName, files: RouteFiles, sender: FileSender): RelayFiles {
  return {
    remember: async (entry, item) => {
      const url = item['download_url']
      if (typeof url !== 'string' || url === '') return null
      if (!files.transfers.isOwn(url)) return UNSTORED_FILES.remember(entry, item)
      const type = item['type']
      const remembered = await files.store.remember({
        route, channelId: entry.id, kind: 'inbound', filename: textOrNull(item['filename']), claimedMime: textOrNull(item['mime_type']),
        claimedType: type === 'image' || type === 'video' || type === 'audio' ? type : 'file',
      }, url)
      return `/files/refs/${remembered.ref}`
    },
    forward: (entry, ref) => sender.upload(entry, ref),
  }
}

const textOrNull = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)
