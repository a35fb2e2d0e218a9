/** A push on its way to xAgent, offline: what `chat.message` it becomes, or why none. */
import { messagePayload } from '../protocol/im-v2.js'
import type { Packet } from '../protocol/packet.js'
import { translatePush, type TranslatedPush } from '../translate/message-push.js'
import type { Preset } from '../translate/preset.js'
import { explainPush } from './translate-explain.js'
import { outgoing, type Seen, type Translated, type TranslateSession } from './translate-session.js'

/** The rules of a connector whose configuration says nothing. */
const RULES = { accept: 'all', commands: 'private', senderLine: 'off' } as const
const REASONS: Readonly<Record<Extract<TranslatedPush, { kind: 'not_forwarded' }>['reason'], string>> = {
  event_kind: 'its event_kind is not im.message.received',
  not_user_message: 'the preset\'s user_message_when says that no user wrote it',
  not_accepted: 'its sender is not accepted',
  command: 'it starts like a command and comes from a group, and commands are private',
}

/** Translates one push; it is the one that later finals of its channel answer. */
export function pushed(session: TranslateSession, packet: Packet, line: number): Translated {
  const { push, seen } = readSeen(session, packet, line)
  const { preset } = session
  if (push.kind !== 'not_forwarded' || push.reason !== 'event_kind') remember(session, packet, push, seen)
  const explain = explainPush(packet.payload, push, preset)
  if (push.kind !== 'message') return { out: [], notes: [`message.push becomes nothing: ${whyNot(push)}`], explain }
  const files = push.body.files.map((file, index) => ({ ...file, ref: `file_${index + 1}` }))
  const payload = messagePayload({ messageId: push.messageId, text: push.body.text, createdAt: push.createdAt, files })
  return { out: [outgoing(line, packet, { ...channelOf(packet), type: 'chat.message', payload })], notes: [], explain }
}

/** The push as one that finals can answer. */
export function readSeen(session: TranslateSession, packet: Packet, line: number): { readonly push: TranslatedPush; readonly seen: Seen } {
  session.takeProvider(packet.payload['provider'])
  const { preset, tools } = session
  const push = translatePush(packet.payload, { preset, rules: RULES, tools, files: true, now: packet.time ?? Date.now(), freshId: () => `line_${line}` })
  return { push, seen: { line, payload: packet.payload, conversation: push.conversation, target: push.kind === 'message' ? push.target : null } }
}

function remember(session: TranslateSession, packet: Packet, push: TranslatedPush, seen: Seen): void {
  const channel = session.channel(packet.channelId ?? '')
  if (push.kind === 'message') channel.latest = seen
  if (push.privateChat && push.conversation !== null && lastChatMatters(session.preset)) channel.lastPrivate = push.conversation
}

const lastChatMatters = ({ reply }: Preset): boolean => reply.some((rule) => rule.lastChatOnly)

function whyNot(push: Exclude<TranslatedPush, { kind: 'message' }>): string {
  switch (push.kind) {
    case 'not_forwarded': return `not forwarded, ${push.reason}: ${REASONS[push.reason]}`
    case 'empty': return 'nothing is left to say; it would be a dead letter empty_message'
    case 'files_only': return 'it holds files alone, and none are carried'
  }
}

/** The channel's id is xAgent's own where xAgent brought it; else the gateway maps it. */
export const channelOf = ({ channelId }: Packet): { readonly channelId?: string } => (channelId === undefined ? {} : { channelId })
