/** What protocol 3.0 admits from a connector, written from docs/protocol.md's sources: Card, Descriptor, health, packets. */
import { z } from 'zod'

const text = z.string().min(1)
const toolId = z.string().regex(/^[A-Za-z0-9_.-]{1,256}$/)
const build = z.strictObject({ version: text.optional(), git_tag: text.optional(), git_rev: text.optional(), build_time: text })
const inputSchema = z.object({
  type: z.literal('object'),
  properties: z.object({ connector_channel_id: z.object({ type: z.literal('string') }) }).catchall(z.unknown()).refine((all) => !('connector_card_id' in all), 'no argument named connector_card_id'),
  required: z.array(text).refine((all) => all.includes('connector_channel_id') && new Set(all).size === all.length, 'must require connector_channel_id, each name once'),
})
const field = z.strictObject({
  name: text, label: text, input_type: z.enum(['text', 'password']), required: z.boolean().optional(), placeholder: z.string().optional(), help_text: z.string().optional(),
  secret: z.boolean().optional(), default_value: z.string().optional(),
}).refine((one) => one.secret !== true || one.default_value === undefined, 'no default on a secret')
const flow = z.strictObject({
  id: text, target_type: z.literal('im'), type: z.enum(['qr_login', 'form']), title: z.string().optional(), description: z.string().optional(), fields: z.array(field).optional(),
}).refine((one) => one.type !== 'form' || (one.fields ?? []).length > 0, 'a form has a field')

/** Skill names: lowercase hyphen-case, `connector-` and the card id with hyphens. */
export const skillNameOf = (cardId: string): string => `connector-${cardId.replace(/[._]/g, '-')}`

export const cardSchema = z.strictObject({
  schema: z.literal('xagent.connector/v1'),
  protocol_version: z.literal('3.0'),
  build,
  connector_card_id: text,
  connector: z.strictObject({ name: text, version: text, vendor: z.string().optional(), description: z.string().optional() }),
  supports: z.strictObject({
    user_channel_mode: z.literal('single'), target_types: z.tuple([z.literal('im')]), profiles: z.tuple([z.literal('xagent.im.v2')]),
    targets: z.array(z.strictObject({ target_type: z.literal('im'), provider: text, label: text, description: z.string().optional() })).optional(),
  }),
  tools: z.array(z.strictObject({
    tool_id: toolId, profile: z.literal('xagent.im.v2'), title: z.string(), description: z.string(), related_skill_ids: z.array(text), input_schema: inputSchema,
  })).refine((tools) => new Set(tools.map((tool) => tool.tool_id)).size === tools.length, 'tool ids are unique'),
  auth_flows: z.array(flow).optional(),
  ui: z.strictObject({ login_flow: z.strictObject({ flow_id: text.optional(), steps: z.array(z.strictObject({ type: text, request_type: text.optional(), response_type: text.optional() })) }) }).optional(),
  security: z.strictObject({ api_key_required: z.boolean(), data_classes: z.array(text).optional() }),
})

export const descriptorSchema = z.strictObject({
  schema: z.literal('xagent.connection/v2'),
  connection: z.strictObject({
    connector_card_id: text, connector_id: text, connector_channel_id: text, target_type: z.literal('im'), profiles: z.tuple([z.literal('xagent.im.v2')]),
    status: z.enum(['created', 'authenticating', 'connected', 'degraded', 'offline', 'expired', 'revoked', 'error']),
  }),
  target: z.strictObject({ provider: text, label: text.optional(), display_name: text, account_hint: text.optional() }),
  tools: z.array(z.strictObject({
    tool_id: toolId, status: z.enum(['available', 'unavailable', 'denied_by_target', 'requires_reauth', 'not_supported']),
    target_permission_state: z.enum(['unknown', 'granted', 'denied', 'requires_reauth']).optional(), reason: z.string().optional(),
  })),
})

export const healthSchema = z.strictObject({ status: z.literal('ok'), connector_card_id: text, connector_card_version: text, protocol_version: z.literal('3.0'), build })

const envelope = z.strictObject({
  schema: z.literal('xagent.connector.packet/v1'), packet_id: text, request_id: text.optional(), reply_to: text.optional(), connector_channel_id: text.optional(), type: text,
  time: z.number().int().nonnegative(), payload: z.record(z.string(), z.unknown()), error: z.strictObject({ code: text, message: text.optional() }).optional(),
})
const authAck = z.strictObject({
  connector_channel_id: text, flow_id: text.optional(), auth_session_id: text, status: z.enum(['pending', 'scanned', 'authenticated', 'expired', 'qr_refresh_required', 'failed', 'unauthenticated']),
  qr_code_text: text.optional(), qr_code_image: text.optional(), expires_at: z.number().int().optional(), poll_interval_millis: z.number().int().optional(), message: z.string().optional(),
  connection_descriptor: descriptorSchema.optional(),
})
const fileItem = z.strictObject({
  type: z.enum(['image', 'video', 'audio', 'file']), file_ref: text, filename: text.optional(), mime_type: text.optional(), byte_size: z.number().int().nonnegative().optional(),
  expires_at: z.number().int().nonnegative().optional(), download_url: z.string().regex(/^(\/|https?:\/\/)/),
})
const PAYLOADS: Readonly<Record<string, z.ZodType>> = {
  'connector.hello.ack': z.strictObject({ connector_card_id: text, connector_id: text, protocol_version: z.literal('3.0') }),
  'channel.open.ack': z.strictObject({ connector_channel_id: text, connection_descriptor: descriptorSchema }),
  'channel.close.ack': z.strictObject({ status: z.literal('ok') }),
  'connection.descriptor.get.ack': z.strictObject({ connection_descriptor: descriptorSchema }),
  'connection.descriptor.push': z.strictObject({ connection_descriptor: descriptorSchema }),
  'auth.start.ack': authAck,
  'auth.status.ack': authAck,
  'auth.logout.ack': z.strictObject({ status: z.literal('ok'), connection_descriptor: descriptorSchema }),
  'tool.invoke.ack': z.strictObject({ tool_id: toolId, result: z.record(z.string(), z.unknown()) }),
  'auth.cancel.ack': z.strictObject({ auth_session_id: z.string(), status: z.enum(['canceled', 'ignored', 'not_found']), auth_status: text.optional() }),
  'tool.progress.push': z.strictObject({ tool_id: toolId, status: z.string().optional(), message: z.string().optional(), progress: z.number().optional() }),
  'chat.message': z.strictObject({ message_id: text, text: z.string().optional(), files: z.array(fileItem).optional(), created_at: z.number().int().nonnegative().optional() })
    .refine(({ text: words = '', files = [] }) => words.trim() !== '' || files.length > 0, 'text or files')
    .refine(({ files = [] }) => new Set(files.map((file) => file.file_ref)).size === files.length, 'a file_ref is unique in its message'),
  'chat.message.ack': z.discriminatedUnion('status', [
    z.strictObject({ status: z.enum(['accepted', 'duplicate']), message_id: text }),
    z.strictObject({ status: z.literal('rejected'), message_id: text, code: text, message: text.optional(), retryable: z.boolean() }),
  ]),
  pong: z.strictObject({}),
  error: z.strictObject({}),
}
const WITH_REPLY_TO = /\.ack$|^pong$|^error$/

/** What is wrong with a packet that the gateway sent to xAgent; null = nothing. */
export function packetProblem(packet: unknown): string | null {
  const parsed = envelope.safeParse(packet)
  if (!parsed.success) return `envelope: ${parsed.error.message}`
  const { type, payload, error, reply_to: replyTo } = parsed.data
  const schema = PAYLOADS[type]
  if (schema === undefined) return `${type} is no packet of a connector`
  if (WITH_REPLY_TO.test(type) && replyTo === undefined) return `${type} answers nothing`
  if (type === 'error') return error === undefined ? 'an error without error' : null
  if (error !== undefined) return Object.keys(payload).length === 0 ? null : 'payload beside error'
  const checked = schema.safeParse(payload)
  return checked.success ? null : `${type}: ${checked.error.message}`
}

/** Requests that a v1 connector knows, by the payload that each may have. */
const SOUTHBOUND: Readonly<Record<string, z.ZodType>> = {
  'connector.hello': z.strictObject({ connector_card_id: text, connector_id: z.string(), protocol_version: z.literal('3.0'), supported_profiles: z.tuple([z.literal('xagent.im.v1')]) }),
  'channel.open': z.strictObject({}),
  'auth.start': z.strictObject({ flow_id: z.string(), input: z.unknown() }),
  'auth.status': z.strictObject({ flow_id: z.string(), auth_session_id: z.string(), refresh: z.literal(true).optional() }),
  'auth.cancel': z.strictObject({ auth_session_id: z.string() }),
  'auth.logout': z.strictObject({}),
  'connection.descriptor.get': z.strictObject({}),
  'tool.invoke': z.strictObject({
    tool_id: text, arguments: z.object({ connector_channel_id: text }).catchall(z.unknown()), context: z.strictObject({ tool_call_id: text }),
  }),
  ping: z.strictObject({}),
}

/** What is wrong with a packet that the gateway sent to a v1 connector; null = nothing. An ack of a push would be wrong, too. */
export function southProblem(packet: unknown): string | null {
  const parsed = envelope.safeParse(packet)
  if (!parsed.success) return `envelope: ${parsed.error.message}`
  const { type, payload, request_id: requestId } = parsed.data
  const schema = SOUTHBOUND[type]
  if (schema === undefined) return `${type} is no packet that a v1 connector is sent`
  if (requestId === undefined) return `${type} asks without a request_id`
  const checked = schema.safeParse(payload)
  return checked.success ? null : `${type}: ${checked.error.message}`
}
