/** A simulated third-party v1 connector, made from the text of the v1 profile alone (§4-§6). */
import { v1Skill, wrapped, type ConnectorKind, type ToolKind } from '../connector-kind.js'
import { textField, wireId } from '../wire-packet.js'
import type { JsonObject } from '../../protocol/packet.js'

const SEND = 'example_message_send'
const REPLY = 'example_message_reply'
const FIRST_NUMBER = 1

const tool = (toolId: string, ...names: string[]): JsonObject => ({
  tool_id: toolId,
  profile: 'xagent.im.v1',
  title: toolId.replaceAll('_', ' '),
  description: 'Sends to the bound target.',
  related_skill_ids: ['im-connector-reply'],
  input_schema: {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(['connector_channel_id', ...names].map((name) => [name, { type: 'string' }])),
    required: ['connector_channel_id', ...names],
  },
})

const sent: ToolKind['result'] = (account, _args, _recipient, now) => ({
  message_id: `out-${account.nextNumber++}`, sent_at: now, status: 'sent',
})

export const generic: ConnectorKind = {
  name: 'generic',
  card: {
    schema: 'xagent.connector/v1',
    connector_card_id: 'im.example',
    connector: { name: 'Example Connector', version: '1.2.0', vendor: 'example', description: 'A connector of another vendor.' },
    supports: {
      user_channel_mode: 'single',
      target_types: ['im'],
      targets: [{ target_type: 'im', provider: 'example', label: 'Example' }],
      profiles: ['xagent.im.v1'],
    },
    tools: [tool(SEND, 'text'), tool(REPLY, 'reply_ref', 'text')],
    auth_flows: [{
      id: 'example_login', target_type: 'im', type: 'form', title: 'Sign in',
      fields: [{ name: 'password', label: 'Password', input_type: 'password', required: true, secret: true }],
    }],
    security: { trust_level: 'local', api_key_required: true, data_classes: ['im.messages'] },
  },
  skill: v1Skill('Example', SEND),
  newChannelId: () => wireId('ch-', 9),
  newConnectorId: () => wireId('example-', 9),
  target: { provider: 'example', label: 'Example' },
  whileClosed: 'lost',
  notOpenShape: 'ack',
  notAuthenticated: 'channel is not signed in',
  unknownTool: (toolId) => `unknown tool_id: ${toolId}`,
  forgetsLostToken: false,
  movesAccount: false,
  signIn: {
    flowId: 'example_login',
    form: true,
    steps: ['authenticated'],
    lifetimeMs: null,
    startPollMs: null,
    statusPollMs: 1000,
    qrCodeText: null,
    sessionIdBytes: 12,
    namesChannel: true,
    pushesDescriptor: false,
    outlivesSocket: false,
    statusFromBinding: false,
  },
  tools: new Map<string, ToolKind>([
    [SEND, { needs: new Map([['text', 'text required']]), recipient: (account) => account.recipient ?? '', result: sent }],
    [REPLY, {
      needs: new Map([['reply_ref', 'reply_ref required'], ['text', 'text required']]),
      recipient: (account, args) => account.replyRefs.get(textField(args, 'reply_ref')) ?? { error: 'reply_ref not found or expired' },
      result: sent,
    }],
  ]),
  newAccount: () => ({
    displayName: 'Example account', accountHint: 'ex***1', recipient: 'owner', nextNumber: FIRST_NUMBER, replyRefs: new Map(),
  }),
  push: (account, message, media, now) => {
    const sender = message.senderId ?? 'person-1'
    const inGroup = message.group !== undefined && message.group !== false
    const usualChat = inGroup ? 'group-1' : `chat-${sender}`
    const chatId = message.chatId ?? (typeof message.group === 'string' ? message.group : usualChat)
    const replyRef = wireId('rr-', 12)
    account.replyRefs.set(replyRef, chatId)
    return {
      ...wrapped({ from: sender, platform: 'example', words: message.text, files: media.length, tool: REPLY, replyRef }),
      chat_id: chatId,
      chat_type: inGroup ? 'group' : 'p2p',
      create_time_ms: message.createTimeMs ?? now,
      event_kind: 'im.message.received',
      ...(media.length > 0 && { media }),
      message_id: message.messageId ?? `in-${account.nextNumber++}`,
      message_type: 'text',
      profile: 'xagent.im.v1',
      provider: 'example',
      raw_text: message.text,
      reply: { required: true, tool_id: REPLY, reply_ref: replyRef },
      sender_id: sender,
      sender_name: message.senderName ?? sender,
      skill: { skill_id: 'im-connector-reply', required_tool_ids: [SEND, REPLY] },
    }
  },
  mediaItem: (file, ref, expiresAt) => ({
    byte_size: file.byteSize ?? 70,
    download_url: `/media/refs/${ref}`,
    expires_at: expiresAt,
    filename: file.filename ?? 'file.bin',
    media_ref: ref,
    mime_type: file.mimeType ?? 'application/octet-stream',
    type: file.type,
  }),
  mediaRefPrefix: 'media_',
}
