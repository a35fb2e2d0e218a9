/** The simulated WeChat connector: one channel is one account, to which many people and groups write. */
import { randomBytes } from 'node:crypto'
import { v1Skill, wrapped, type ConnectorKind } from '../connector-kind.js'
import { card, textPush } from '../recorded/wechat.js'
import { objectField, textField, wireId } from '../wire-packet.js'

const OWNER = 'u_owner1@im.wechat'
const FIRST_NUMBER = 7_100_000_001
/** Given so, a call goes there and not to the owner: honoured though the Card does not declare it. */
const recipientOf = (args: Parameters<typeof textField>[0]) => textField(args, 'recipient_ref') || textField(args, 'to') || OWNER
/** The id is the connector's own: it proves nothing about the platform. */
const sent = (recipient: string, now: number) =>
  ({ message_id: wireId('msg_', 12), recipient_ref: recipient, sent_at: now, status: 'sent' })
const MIME_TYPES = { image: 'image/jpeg', video: 'video/mp4', file: 'application/octet-stream' } as const
const FIXED_NAMES = { image: 'wechat-image.jpg', video: 'wechat-video.mp4', file: undefined } as const

export const wechat: ConnectorKind = {
  name: 'wechat',
  card,
  skill: v1Skill('WeChat', 'wechat_message_send'),
  newChannelId: () => wireId('', 9),
  newConnectorId: () => wireId('conn_im_wechat_', 8),
  target: { provider: 'wechat', label: 'wechat' },
  whileClosed: 'queued',
  notOpenShape: 'error',
  notAuthenticated: 'channel is not bound to an authenticated target user',
  unknownTool: (toolId) => `unknown tool_id: ${toolId}`,
  forgetsLostToken: true,
  movesAccount: true,
  signIn: {
    flowId: 'wechat_qr_login',
    form: false,
    steps: ['pending', 'scanned', 'authenticated'],
    lifetimeMs: 300_000,
    startPollMs: 500,
    statusPollMs: 2000,
    qrCodeText: 'https://weixin.example/scan/qr-88ab475005d0',
    sessionIdBytes: 12,
    namesChannel: false,
    pushesDescriptor: false,
    outlivesSocket: false,
    statusFromBinding: false,
  },
  tools: new Map([
    ['wechat_message_send', {
      needs: new Map([['text', 'message text required']]),
      recipient: (_account, args) => recipientOf(args),
      result: (_account, _args, recipient, now) => sent(recipient, now),
    }],
    ['wechat_message_send_media', {
      needs: new Map([['media_ref', 'media_ref required']]),
      recipient: (_account, args) => recipientOf(args),
      result: (_account, args, recipient, now) => ({ media_ref: textField(args, 'media_ref'), ...sent(recipient, now) }),
    }],
    ['wechat_typing', { needs: new Map(), recipient: (_account, args) => recipientOf(args), result: () => ({ status: 'ok' }) }],
  ]),
  newAccount: () => ({
    displayName: 'wechat bot', accountHint: 'bot1***.bot', recipient: OWNER, nextNumber: FIRST_NUMBER, replyRefs: new Map(),
  }),
  push: (account, message, media, now) => {
    const inGroup = message.group !== undefined && message.group !== false
    const sender = message.senderId ?? (inGroup ? 'u_bob@im.wechat' : 'u_alice@im.wechat')
    const name = message.senderName ?? (inGroup ? 'Bob' : '')
    const groupId = typeof message.group === 'string' ? message.group : inGroup ? 'g_family@im.chatroom' : ''
    const number = account.nextNumber++
    const words = message.text.trim()
    const states = {
      ...(message.state === 'own' && { message_type: 2 }),
      ...(message.state === 'unfinished' && { message_state: 1 }),
    }
    const time = message.createTimeMs ?? now
    const facts = {
      context_token: `ctx-${sender}-${randomBytes(4).toString('hex')}`,
      create_time_ms: time,
      session_id: `sess-${groupId === '' ? sender : groupId}`,
    }
    return {
      ...textPush,
      ...wrapped({ from: name === '' ? sender : name, platform: 'wechat', words, files: media.length, tool: 'wechat_message_send' }),
      ...facts,
      ...states,
      account_hint: account.accountHint,
      display_name: name,
      from: sender,
      group_id: groupId,
      ...(media.length > 0 && { media }),
      message_id: message.messageId ?? String(number),
      raw_message: {
        ...objectField(textPush, 'raw_message'),
        ...facts,
        ...states,
        ...(message.state === 'recalled' && { delete_time_ms: now }),
        from_user_id: sender,
        ...(groupId !== '' && { group_id: groupId }),
        item_list: [{ text_item: { text: words }, type: 1 }],
        ...(name !== '' && { display_name: name }),
        // It goes without one where the payload's is empty.
        message_id: message.messageId === '' ? undefined : number,
      },
      raw_text: words,
      sender_id: sender,
      sender_name: name,
    }
  },
  mediaItem: (file, ref, expiresAt) => ({
    byte_size: file.byteSize ?? 70,
    download_url: `/media/refs/${ref}`,
    expires_at: expiresAt,
    filename: FIXED_NAMES[file.type] ?? file.filename ?? 'plan.pdf',
    media_ref: ref,
    mime_type: MIME_TYPES[file.type],
    type: file.type,
  }),
  mediaRefPrefix: 'media_',
}
