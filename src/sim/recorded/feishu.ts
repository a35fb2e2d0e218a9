/** Recorded of the public Feishu connector 0.0.4 (protocol 1.0): its Card and a push. Invented data. */
import type { JsonObject } from '../../protocol/packet.js'

export const card: JsonObject = {
  schema: 'xagent.connector/v1',
  connector_card_id: 'im.feishu',
  connector: { name: 'Feishu Connector', version: '0.0.4', vendor: 'xagent', description: 'Local feishu connector.' },
  supports: {
    user_channel_mode: 'single',
    target_types: ['im'],
    targets: [{ target_type: 'im', provider: 'feishu', label: 'feishu', description: 'feishu messages.' }],
    profiles: ['xagent.im.v1'],
  },
  tools: [
    {
      tool_id: 'feishu_message_send',
      profile: 'xagent.im.v1',
      title: 'feishu message send',
      description: 'Sends to the bound feishu target. Load im-connector-reply for files.',
      related_skill_ids: ['im-connector-reply'],
      input_schema: {
        additionalProperties: false,
        properties: {
          connector_channel_id: { description: 'See the Skill im-connector-reply.', type: 'string' },
          text: { description: 'See the Skill im-connector-reply.', type: 'string' },
        },
        required: ['text', 'connector_channel_id'],
        type: 'object',
      },
    },
    {
      tool_id: 'feishu_message_send_image',
      profile: 'xagent.im.v1',
      title: 'feishu message send image',
      description: 'Sends to the bound feishu target. Upload first through POST /media/uploads with header ' +
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
    {
      tool_id: 'feishu_message_reply',
      profile: 'xagent.im.v1',
      title: 'feishu message reply',
      description: 'Sends to the bound feishu target. Load im-connector-reply for files.',
      related_skill_ids: ['im-connector-reply'],
      input_schema: {
        additionalProperties: false,
        properties: {
          connector_channel_id: { description: 'See the Skill im-connector-reply.', type: 'string' },
          reply_ref: { description: 'See the Skill im-connector-reply.', type: 'string' },
          text: { description: 'See the Skill im-connector-reply.', type: 'string' },
        },
        required: ['reply_ref', 'text', 'connector_channel_id'],
        type: 'object',
      },
    },
    {
      tool_id: 'feishu_message_reply_image',
      profile: 'xagent.im.v1',
      title: 'feishu message reply image',
      description: 'Sends to the bound feishu target. Upload first through POST /media/uploads with header ' +
        'X-XAgent-Connector-Channel-ID to get a media_ref. Load im-connector-reply for files.',
      related_skill_ids: ['im-connector-reply'],
      input_schema: {
        additionalProperties: false,
        properties: {
          connector_channel_id: { description: 'See the Skill im-connector-reply.', type: 'string' },
          media_ref: { description: 'See the Skill im-connector-reply.', type: 'string' },
          reply_ref: { description: 'See the Skill im-connector-reply.', type: 'string' },
          text: { description: 'See the Skill im-connector-reply.', type: 'string' },
        },
        required: ['reply_ref', 'media_ref', 'connector_channel_id'],
        type: 'object',
      },
    },
  ],
  auth_flows: [
    {
      id: 'feishu_qr_create_app',
      target_type: 'im',
      type: 'qr_login',
      title: 'Explains the step.',
      description: 'Explains the step.',
    },
  ],
  ui: {
    login_flow: {
      flow_id: 'feishu_qr_create_app',
      steps: [
        { type: 'qr_code', request_type: 'auth.start', response_type: 'auth.start.ack' },
        { type: 'polling', request_type: 'auth.status', response_type: 'auth.status.ack' },
      ],
    },
  },
  security: { trust_level: 'local', api_key_required: true, data_classes: ['im.messages', 'im.images', 'app.credentials'] },
}

/** The payload of a private text message, without the wrapped text that stands in it three times. */
export const textPush: JsonObject = {
  chat_id: 'oc_p2p_ou_sam',
  chat_type: 'p2p',
  create_time_ms: 1796076767111,
  display_name: 'ou_sam',
  event_kind: 'im.message.received',
  from: 'ou_sam',
  message_id: 'om_f6ae76c2f719efc57e5ec725',
  message_type: 'text',
  profile: 'xagent.im.v1',
  provider: 'feishu',
  raw_text: 'Could you check the north pump?',
  received_at: 1796076767112,
  related_skill_ids: ['im-connector-reply'],
  reply: { required: true, tool_id: 'feishu_message_send' },
  reply_image_tool_id: 'feishu_message_send_image',
  reply_tool_id: 'feishu_message_send',
  sender_id: 'ou_sam',
  sender_name: 'ou_sam',
  skill: { required_tool_ids: ['feishu_message_send', 'feishu_message_send_image'], skill_id: 'im-connector-reply' },
}
