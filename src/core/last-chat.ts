/**
 * Connectors that answer only the private chat that wrote last (DESIGN §5): an answer for an earlier writer is refused rather
 * than sent to somebody else.
 */
import type { TranslatedPush } from '../translate/message-push.js'
import type { ReplyAddress } from './record.js'
import type { Channel, Shared } from './state.js'

/** Every private push moves it, forwarded or not. Answers whether there is something new to store. */
export function noteWriter(channel: Channel, shared: Shared, push: TranslatedPush): boolean {
  const { conversation, privateChat } = push
  if (conversation === null || !privateChat || !shared.dialect.preset.reply.some((rule) => rule.lastChatOnly)) return false
  const before = channel.lastPrivate
  if (before?.conversation === conversation) {
    before.known = true
    return false
  }
  channel.lastPrivate = { conversation, several: before !== null, known: true }
  return true
}

/** The connector could not be read for a time: somebody else may have written. */
export function writerUnknown(channel: Channel): void {
  if (channel.lastPrivate !== null) channel.lastPrivate.known = false
}

/** Whether the connector would send it to the conversation that it is meant for. */
export function stillLast(channel: Channel, target: ReplyAddress): boolean {
  if (!target.lastChatOnly) return true
  const last = channel.lastPrivate
  return last !== null && last.conversation === target.conversation && (last.known || !last.several)
}
