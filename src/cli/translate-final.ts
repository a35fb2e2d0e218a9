/** A final of xAgent's, offline: the calls of the connector's tools that it becomes, or the ack that refuses it. */
import type { FinalFile } from '../core/event.js'
import type { ReplyAddress } from '../core/record.js'
import { ackPayload, parseFinal, type FinalMessage } from '../protocol/im-v2.js'
import type { MessageId } from '../protocol/ids.js'
import { isId, isObject, type JsonObject, type Packet } from '../protocol/packet.js'
import { planReply } from '../translate/reply-plan.js'
import { defaultTarget } from '../translate/reply-target.js'
import { explainAnswer } from './translate-explain.js'
import { channelOf } from './translate-push.js'
import { outgoing, type ChannelSeen, type Seen, type Translated, type TranslateSession } from './translate-session.js'

interface Refusal {
  readonly code: string
  readonly message?: string
}

/** Plans one final for whoever wrote last on its channel, or for the push that was named. */
export function finalReceived(session: TranslateSession, packet: Packet, line: number): Translated {
  const final = parseFinal(packet.payload)
  if (!final.ok) return invalid(packet, line, final.error)
  const channel = session.channel(packet.channelId ?? '')
  const answered = session.answered ?? channel.latest
  const target = answered === null ? defaultTarget(session.preset, session.tools, packet.time ?? 0) : answered.target
  const explain = {
    from: 'chat.message', to: 'tool.invoke', preset: session.preset.name, answers: whom(answered, target),
    answer: explainAnswer(answered?.payload ?? {}, target, session.preset), left_out: final.value.unknownFields.map((field) => ({ field, why: 'no field of v2; counted unknown_field' })),
  }
  if (target === null) return refused(packet, line, final.value.messageId, { code: 'no_reply_target' }, explain)
  if (hasMoved(channel, target)) return refused(packet, line, final.value.messageId, { code: 'reply_target_moved' }, explain)
  const plan = planReply(final.value.text, filesOf(final.value, packet.payload), target, session.preset, null)
  if (!plan.ok) return refused(packet, line, final.value.messageId, { code: plan.code }, explain)
  session.expectAnswers(channel, { messageId: final.value.messageId, packetId: packet.packetId, steps: plan.steps.map(({ tool }) => tool), target, done: 0 })
  const out = plan.steps.map((step, index) => outgoing(line, packet, {
    ...channelOf(packet), type: 'tool.invoke',
    payload: {
      tool_id: step.tool,
      arguments: { ...step.arguments, ...(step.file !== undefined && { [step.file.argument]: `upload_${step.file.index + 1}` }), ...(packet.channelId !== undefined && { connector_channel_id: packet.channelId }) },
      context: { tool_call_id: `${packet.channelId ?? ''}:${final.value.messageId}:${index + 1}` },
    },
  }, index + 1))
  return { out, notes: [], explain: { ...explain, steps: plan.steps.map(({ kind, tool }) => ({ kind, tool, ...(kind === 'file' && { before: 'the file is uploaded to the connector' }) })) } }
}

/** What the answer to a final says to xAgent. */
export function ackFor(packet: Packet, line: number, to: { readonly messageId: string; readonly packetId: string }, verdict: Parameters<typeof ackPayload>[1]): string {
  return outgoing(line, packet, { replyTo: to.packetId as Packet['packetId'], ...channelOf(packet), type: 'chat.message.ack', payload: ackPayload(to.messageId as MessageId, verdict) })
}

/** Refused for good, like everything that stands in the packets alone. */
function refused(packet: Packet, line: number, messageId: MessageId, { code, message }: Refusal, explain: JsonObject): Translated {
  const verdict = { status: 'rejected', code, ...(message !== undefined && { message }), retryable: false } as const
  return { out: [ackFor(packet, line, { messageId, packetId: packet.packetId }, verdict)], notes: [`chat.message is refused: ${code}${message === undefined ? '' : `, ${message}`}`], explain: { ...explain, to: 'chat.message.ack', outcome: { kind: 'rejected', code } } }
}

function invalid(packet: Packet, line: number, error: Refusal): Translated {
  const id = packet.payload['message_id']
  const explain = { from: 'chat.message', to: isId(id) ? 'chat.message.ack' : 'error' }
  if (isId(id)) return refused(packet, line, id as MessageId, error, explain)
  return { out: [outgoing(line, packet, { replyTo: packet.packetId, ...channelOf(packet), type: 'error', payload: {}, error })], notes: [`chat.message is no final: ${error.message ?? error.code}`], explain }
}

/** The bytes are not here: what the final says of its files is believed. */
function filesOf(final: FinalMessage, payload: JsonObject): FinalFile[] {
  const items = Array.isArray(payload['files']) ? payload['files'] : []
  return final.files.map(({ fileRef, filename, byteSize }, index) => {
    const item: unknown = items[index]
    const mimeType = isObject(item) && typeof item['mime_type'] === 'string' ? item['mime_type'] : 'application/octet-stream'
    return { ref: fileRef, stored: { byteSize: byteSize ?? 0, mimeType, filename: filename ?? fileRef } }
  })
}

/** The connector would send it to the private chat that wrote last, and that is another one. */
const hasMoved = (channel: ChannelSeen, target: ReplyAddress): boolean => target.lastChatOnly && channel.lastPrivate !== null && channel.lastPrivate !== target.conversation

function whom(answered: Seen | null, target: ReplyAddress | null): string {
  if (answered !== null) return answered.line === 0 ? 'the push that --to names' : `the push of line ${answered.line}, the latest on this channel`
  return target === null ? 'nobody: no push came before it on this channel' : 'nobody: it goes to the preset\'s default target'
}
