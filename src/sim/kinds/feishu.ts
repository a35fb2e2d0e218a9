/** The simulated Feishu connector: one channel is one app, with many private chats and groups. */
import { randomBytes } from 'node:crypto'
import { v1Skill, wrapped, type Account, type ConnectorKind, type ToolKind } from '../connector-kind.js'
import { card, textPush } from '../recorded/feishu.js'
import { textField, wireId } from '../wire-packet.js'

const objectId = (prefix: string) => prefix + randomBytes(12).toString('hex')
const send = { text: 'feishu_message_send', image: 'feishu_message_send_image' } as const
const reply = { text: 'feishu_message_reply', image: 'feishu_message_reply_image' } as const

/** A plain send goes to the private chat that wrote last, whoever it was meant for. */
const lastChat: ToolKind['recipient'] = (account) => account.recipient ?? { error: 'feishu default chat is not bound' }
const repliedChat: ToolKind['recipient'] = (account, args) =>
  account.replyRefs.get(textField(args, 'reply_ref')) ?? { error: 'reply_ref not found or expired' }
const result = (messageType: 'text' | 'image'): ToolKind['result'] =>
  () => ({ message_id: objectId('om_bot'), message_type: messageType })
const needs = (...names: string[]) => new Map(names.map((name) => [name, `${name} required`]))

export const feishu: ConnectorKind = {
  name: 'feishu',
  card,
  skill: v1Skill('Feishu', send.text),
  newChannelId: () => wireId('cch_', 12),
  newConnectorId: () => wireId('conn_im.feishu_', 8),
  target: { provider: 'feishu', label: 'feishu' },
  whileClosed: 'lost',
  notOpenShape: 'ack',
  notAuthenticated: 'channel is not bound to an authenticated Feishu chat',
  unknownTool: (toolId) => `unsupported tool: ${toolId}`,
  forgetsLostToken: false,
  movesAccount: false,
  signIn: {
    flowId: 'feishu_qr_create_app',
    form: false,
    steps: ['pending', 'authenticated'],
    lifetimeMs: 600_000,
    startPollMs: 1000,
    statusPollMs: 1000,
    qrCodeText: 'https://open.example.test/page/cli?user_code=UC12d63c2b',
    sessionIdBytes: 18,
    namesChannel: true,
    pushesDescriptor: true,
    outlivesSocket: true,
    statusFromBinding: false,
  },
  tools: new Map<string, ToolKind>([
    [send.text, { needs: needs('text'), recipient: lastChat, result: result('text') }],
    [send.image, { needs: needs('media_ref'), recipient: lastChat, result: result('image') }],
    [reply.text, { needs: needs('reply_ref', 'text'), recipient: repliedChat, result: result('text') }],
    [reply.image, { needs: needs('reply_ref', 'media_ref'), recipient: repliedChat, result: result('image') }],
  ]),
  newAccount: () => ({
    displayName: 'feishu bot', accountHint: 'cli_***f066', recipient: null, nextNumber: 1, replyRefs: new Map(),
  }),
  push: (account, message, media, now) => {
    const sender = message.senderId ?? 'ou_sam'
    const inGroup = message.group !== undefined && message.group !== false
    const usualChat = inGroup ? 'oc_group_ops' : `oc_p2p_${sender}`
    const chatId = message.chatId ?? (typeof message.group === 'string' ? message.group : usualChat)
    const tools = inGroup ? reply : send
    const replyRef = inGroup ? rememberReply(account, chatId) : undefined
    if (!inGroup) account.recipient = chatId
    const words = message.text.trim()
    return {
      ...textPush,
      ...wrapped({
        from: sender, platform: 'feishu', words, files: media.length, tool: tools.text, ...(replyRef !== undefined && { replyRef }),
      }),
      chat_id: chatId,
      chat_type: inGroup ? 'group' : 'p2p',
      create_time_ms: message.createTimeMs ?? now,
      display_name: message.senderName ?? sender,
      from: sender,
      ...(media.length > 0 && { media, message_type: 'image' }),
      message_id: message.messageId ?? objectId('om_'),
      raw_text: words,
      received_at: now,
      reply: { ...(replyRef !== undefined && { reply_ref: replyRef }), required: true, tool_id: tools.text },
      reply_image_tool_id: tools.image,
      ...(replyRef !== undefined && { reply_ref: replyRef }),
      reply_tool_id: tools.text,
      sender_id: sender,
      sender_name: message.senderName ?? sender,
      skill: { required_tool_ids: [tools.text, tools.image], skill_id: 'im-connector-reply' },
    }
  },
  mediaItem: (file, ref, expiresAt) => ({
    byte_size: file.byteSize ?? 70,
    download_url: `/media/refs/${ref}`,
    expires_at: expiresAt,
    filename: file.filename ?? 'pump.png',
    media_ref: ref,
    mime_type: file.mimeType ?? 'image/png',
    type: file.type,
  }),
  mediaRefPrefix: 'media_',
}

/** A new reference with every push, a repeated one too; the old ones go on working. */
function rememberReply(account: Account, chatId: string): string {
  const ref = wireId('reply_', 24)
  account.replyRefs.set(ref, chatId)
  return ref
}
