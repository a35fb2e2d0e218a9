/** The simulated Telegram connector: one channel is one chat of one bot. */
import { v1Skill, wrapped, type ConnectorKind } from '../connector-kind.js'
import { card, textPush } from '../recorded/telegram.js'
import { textField, wireId } from '../wire-packet.js'

const FIRST_CHAT = 880_000_042
/** The first message number in the recording. */
const FIRST_NUMBER = 11

export const telegram: ConnectorKind = {
  name: 'telegram',
  card,
  skill: v1Skill('Telegram', 'telegram_message_send'),
  newChannelId: () => wireId('cch_', 12),
  newConnectorId: () => wireId('conn_im.telegram_', 8),
  target: { provider: 'telegram', label: 'Telegram' },
  whileClosed: 'lost',
  notOpenShape: 'ack',
  notAuthenticated: 'channel is not bound to an authenticated Telegram chat',
  unknownTool: (toolId) => `unknown tool_id: ${toolId}`,
  forgetsLostToken: false,
  movesAccount: false,
  signIn: {
    flowId: 'telegram_bot_binding',
    form: true,
    steps: ['authenticated'],
    lifetimeMs: null,
    startPollMs: null,
    statusPollMs: 2000,
    qrCodeText: null,
    sessionIdBytes: 12,
    namesChannel: true,
    pushesDescriptor: false,
    outlivesSocket: false,
    statusFromBinding: true,
  },
  tools: new Map([
    ['telegram_message_send', {
      needs: new Map([['text', 'message text required']]),
      recipient: (account) => account.recipient ?? '',
      result: (account, _args, chatId, now) => ({ chat_id: chatId, message_id: account.nextNumber++, sent_at: now, status: 'sent' }),
    }],
    ['telegram_message_send_media', {
      needs: new Map([['media_ref', 'media_ref required']]),
      recipient: (account) => account.recipient ?? '',
      result: (account, args) => ({
        media_ref: textField(args, 'media_ref'), media_type: 'file', message_id: account.nextNumber++, status: 'sent',
      }),
    }],
  ]),
  newAccount: (serial, input) => {
    const chatId = textField(input, 'chat_id') || String(FIRST_CHAT + serial)
    return {
      displayName: 'Telegram Sam Doe via @probe_7000001_bot',
      accountHint: `@probe_7000001_bot / chat ${chatId.slice(0, 3)}***${chatId.slice(-3)}`,
      recipient: chatId,
      nextNumber: FIRST_NUMBER,
      replyRefs: new Map(),
    }
  },
  push: (account, message, media, now) => {
    const name = message.senderName ?? 'Sam'
    const chatId = message.chatId ?? account.recipient ?? ''
    const words = message.text.trim()
    return {
      ...textPush,
      ...wrapped({ from: name, platform: 'telegram', words, files: media.length, tool: 'telegram_message_send' }),
      account_hint: account.accountHint,
      chat_id: chatId,
      ...(message.group !== undefined && message.group !== false && { chat_type: 'group' }),
      // The platform counts in whole seconds.
      create_time_ms: message.createTimeMs ?? Math.floor(now / 1000) * 1000,
      display_name: name,
      ...(media.length > 0 && { media }),
      message_id: message.messageId ?? String(account.nextNumber++),
      raw_text: words,
      received_at: now,
      reply_token: chatId,
      sender_id: message.senderId ?? chatId,
      sender_name: name,
    }
  },
  mediaItem: (file, ref, expiresAt) => ({
    byte_size: file.byteSize ?? 70,
    content_type: file.type === 'image' ? '' : (file.mimeType ?? 'application/pdf'),
    download_url: `/media/refs/${ref}`,
    expires_at: expiresAt,
    filename: file.filename ?? `${ref}.jpg`,
    media_ref: ref,
    media_type: file.type,
  }),
  mediaRefPrefix: 'tgmedia_',
}
