/** Recorded of the public Telegram connector 0.0.4 (protocol 1.0): its Card and a push. Invented data. */
import type { JsonObject } from '../../protocol/packet.js'

export const card: JsonObject = {
  schema: 'xagent.connector/v1',
  connector_card_id: 'im.telegram',
  connector: { name: 'Telegram Connector', version: '0.0.4', vendor: 'xagent', description: 'Local telegram connector.' },
  supports: {
    user_channel_mode: 'single',
    target_types: ['im'],
    targets: [{ target_type: 'im', provider: 'telegram', label: 'telegram', description: 'telegram messages.' }],
    profiles: ['xagent.im.v1'],
  },
  tools: [
    {
      tool_id: 'telegram_message_send',
      profile: 'xagent.im.v1',
      title: 'telegram message send',
      description: 'Sends to the bound telegram target. Load im-connector-reply for files.',
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
      tool_id: 'telegram_message_send_media',
      profile: 'xagent.im.v1',
      title: 'telegram message send media',
      description: 'Sends to the bound telegram target. Upload first through POST /media/uploads with header ' +
        'X-XAgent-Connector-Channel-ID to get a media_ref. Load im-connector-reply for files.',
      related_skill_ids: ['im-connector-reply'],
      input_schema: {
        additionalProperties: false,
        properties: {
          caption: { description: 'See the Skill im-connector-reply.', type: 'string' },
          connector_channel_id: { description: 'See the Skill im-connector-reply.', type: 'string' },
          media_ref: { description: 'See the Skill im-connector-reply.', type: 'string' },
          text: { description: 'See the Skill im-connector-reply.', type: 'string' },
        },
        required: ['media_ref', 'connector_channel_id'],
        type: 'object',
      },
      output_schema: {
        properties: {
          media_ref: { description: 'See the Skill im-connector-reply.', type: 'string' },
          media_type: { description: 'See the Skill im-connector-reply.', enum: ['image', 'video', 'file'], type: 'string' },
          message_id: { description: 'See the Skill im-connector-reply.', type: 'integer' },
          status: { description: 'See the Skill im-connector-reply.', type: 'string' },
        },
        type: 'object',
      },
    },
  ],
  auth_flows: [
    {
      id: 'telegram_bot_binding',
      target_type: 'im',
      type: 'form',
      title: 'Explains the step.',
      description: 'Explains the step.',
      fields: [
        {
          name: 'bot_token',
          label: 'Label',
          input_type: 'password',
          required: true,
          placeholder: 'Explains the step.',
          help_text: 'Explains the step.',
          secret: true,
        },
        {
          name: 'chat_id',
          label: 'Label',
          input_type: 'text',
          required: true,
          placeholder: 'Explains the step.',
          help_text: 'Explains the step.',
        },
      ],
    },
  ],
  ui: {
    login_flow: {
      flow_id: 'telegram_bot_binding',
      steps: [{ type: 'form', request_type: 'auth.start', response_type: 'auth.start.ack' }],
    },
  },
  security: { trust_level: 'local', api_key_required: true, data_classes: ['im.messages'] },
}

/** The payload of a private text message, without the wrapped text that stands in it three times. */
export const textPush: JsonObject = {
  account_hint: '@probe_7000001_bot / chat 880***042',
  chat_id: '880000042',
  chat_type: 'private',
  connector: 'im.telegram',
  create_time_ms: 1796076741000,
  display_name: 'Sam',
  event_kind: 'im.message.received',
  message_id: '11',
  profile: 'xagent.im.v1',
  provider: 'telegram',
  raw_text: 'Could you check the north pump?',
  received_at: 1796076741113,
  reply: { required: true, tool_id: 'telegram_message_send' },
  reply_token: '880000042',
  sender_id: '880000042',
  sender_name: 'Sam',
  skill: { required_tool_ids: ['telegram_message_send', 'telegram_message_send_media'], skill_id: 'im-connector-reply' },
}
