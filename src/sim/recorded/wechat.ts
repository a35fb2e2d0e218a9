/** Recorded of the public WeChat connector 0.0.4 (protocol 1.0): its Card and a push. Invented data. */
import type { JsonObject } from '../../protocol/packet.js'

export const card: JsonObject = {
  schema: 'xagent.connector/v1',
  connector_card_id: 'im.wechat',
  connector: { name: 'WeChat Connector', version: '0.0.4', vendor: 'xagent', description: 'Local wechat connector.' },
  supports: {
    user_channel_mode: 'single',
    target_types: ['im'],
    targets: [{ target_type: 'im', provider: 'wechat', label: 'wechat', description: 'wechat messages.' }],
    profiles: ['xagent.im.v1'],
  },
  tools: [
    {
      tool_id: 'wechat_message_send',
      profile: 'xagent.im.v1',
      title: 'wechat message send',
      description: 'Sends to the bound wechat target. Load im-connector-reply for files.',
      related_skill_ids: ['im-connector-reply'],
      input_schema: {
        additionalProperties: false,
        description: 'See the Skill im-connector-reply.',
        properties: {
          connector_channel_id: { description: 'See the Skill im-connector-reply.', type: 'string' },
          text: { description: 'See the Skill im-connector-reply.', type: 'string' },
        },
        required: ['text', 'connector_channel_id'],
        type: 'object',
      },
    },
    {
      tool_id: 'wechat_message_send_media',
      profile: 'xagent.im.v1',
      title: 'wechat message send media',
      description: 'Sends to the bound wechat target. Upload first through POST /media/uploads with header ' +
        'X-XAgent-Connector-Channel-ID to get a media_ref. Load im-connector-reply for files.',
      related_skill_ids: ['im-connector-reply'],
      input_schema: {
        additionalProperties: false,
        properties: {
          connector_channel_id: { description: 'See the Skill im-connector-reply.', type: 'string' },
          media_ref: { description: 'See the Skill im-connector-reply.', type: 'string' },
          text: { description: 'See the Skill im-connector-reply.', type: 'string' },
        },
        required: ['media_ref', 'connector_channel_id'],
        type: 'object',
      },
    },
  ],
  auth_flows: [
    {
      id: 'wechat_qr_login',
      target_type: 'im',
      type: 'qr_login',
      title: 'Explains the step.',
      description: 'Explains the step.',
    },
  ],
  ui: {
    login_flow: {
      flow_id: 'wechat_qr_login',
      steps: [
        { type: 'qr_code', request_type: 'auth.start', response_type: 'auth.start.ack' },
        { type: 'polling', request_type: 'auth.status', response_type: 'auth.status.ack' },
      ],
    },
  },
  security: { trust_level: 'local', api_key_required: true, data_classes: ['im.messages'] },
}

/** The payload of a private text message, without the wrapped text that stands in it three times. */
export const textPush: JsonObject = {
  account_hint: 'bot1***.bot',
  context_token: 'ctx-u_alice@im.wechat-50cc7aa0',
  create_time_ms: 1796076753870,
  display_name: '',
  event_kind: 'im.message.received',
  from: 'u_alice@im.wechat',
  group_id: '',
  message_id: '7100000001',
  message_state: 2,
  message_type: 1,
  profile: 'xagent.im.v1',
  provider: 'wechat',
  raw_message: {
    context_token: 'ctx-u_alice@im.wechat-50cc7aa0',
    create_time_ms: 1796076753870,
    from_user_id: 'u_alice@im.wechat',
    item_list: [{ text_item: { text: 'Could you check the north pump?' }, type: 1 }],
    message_id: 7100000001,
    message_state: 2,
    message_type: 1,
    session_id: 'sess-u_alice@im.wechat',
    to_user_id: 'bot10000aa@im.bot',
  },
  raw_text: 'Could you check the north pump?',
  reply: { required: true, tool_id: 'wechat_message_send' },
  sender_id: 'u_alice@im.wechat',
  sender_name: '',
  session_id: 'sess-u_alice@im.wechat',
  skill: { required_tool_ids: ['wechat_message_send', 'wechat_message_send_media'], skill_id: 'im-connector-reply' },
  to: 'bot10000aa@im.bot',
}
