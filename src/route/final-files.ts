/** The files of a final: what xAgent uploaded for this channel, and what tells one content from another (DESIGN §5). */
import type { ArrivedFinal, FinalFile } from '../core/event.js'
import type { ChannelId } from '../protocol/ids.js'
import type { FinalMessage } from '../protocol/im-v2.js'
import { digest } from '../translate/conversation.js'
import type { RouteContext } from './context.js'

/** References are not part of the content: the same bytes uploaded again are the same file. */
export function finalFiles(final: FinalMessage, channelId: ChannelId, { files, settings }: Pick<RouteContext, 'files' | 'settings'>): Pick<ArrivedFinal, 'files' | 'contentHash'> {
  const content: string[] = [final.text]
  let complete = true
  const found = final.files.map(({ fileRef, type, filename }): FinalFile => {
    const stored = files?.store.find(fileRef)
    if (stored === undefined || stored.channelId !== channelId || stored.route !== settings.name) {
      complete = false
      return { ref: fileRef, stored: null }
    }
    // What a person sent is told by its reference: nobody uploads it again, and its bytes may still be with the connector.
    content.push(type, filename ?? stored.filename, stored.kind === 'inbound' ? stored.ref : stored.sha256)
    return { ref: fileRef, stored: { byteSize: stored.byteSize, mimeType: stored.mimeType, filename: stored.filename } }
  })
  return { files: found, contentHash: complete ? digest(content) : null }
}
