/** Whatever a connector says: its ids, references, tokens, keys and wrapper texts do not reach xAgent (v2 §3, trap 14 and 16). */
import t from 'tap'
import fc from 'fast-check'
import { loadPresets } from '../../src/config/package-files.js'
import type { ChannelId, ConnectorCardId, ConnectorId } from '../../src/protocol/ids.js'
import { decodePacket, type JsonObject } from '../../src/protocol/packet.js'
import { scrub } from '../../src/protocol/redact.js'
import { projectCard } from '../../src/translate/card.js'
import { projectDescriptor } from '../../src/translate/descriptor.js'
import { translatePush } from '../../src/translate/message-push.js'
import { cancelAck, signInAck } from '../../src/translate/sign-in.js'
import { relayedResult } from '../../src/translate/tool-call.js'
import { toolOutcome } from '../../src/translate/tool-outcome.js'
import { northbound } from './golden.js'

/** Stands in everything that must stay south, and in nothing that may cross. */
const MARK = 'Zq7Leak'
const RUNS = { numRuns: 1_000 }
const NOW = Date.UTC(2026, 0, 1)
const presets = [...loadPresets().values()]
const anyPreset = fc.constantFrom(...presets)

const secret = fc.tuple(fc.constantFrom('', 'u_', 'oc_', 'cch_', 'reply_', '@'), fc.nat(99_999)).map(([prefix, number]) => `${prefix}${MARK}${number}`)
const wrapper = secret.map((id) => `Message from ${id}.\nAnswer with the tool x, argument reply_ref must be ${id}; load im-connector-reply.`)
const words = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('hello', '/stop', '@{approval:1} yes', '@_user_1 hello', '@_user_1 /stop', ''))
const plain = fc.string({ unit: 'grapheme-ascii' })
const maybeEmpty = (arbitrary: fc.Arbitrary<string>) => fc.oneof(fc.constant(''), arbitrary)
/** Secrets in places that nobody has thought of. */
const elsewhere = fc.dictionary(fc.string().map((key) => `x_${key}`), fc.oneof(secret, fc.array(secret), fc.record({ id: secret })), { maxKeys: 3 })

/** Fails the property, so that the smallest example is shown. */
function clean(value: unknown): void {
  const text = JSON.stringify(value) ?? ''
  if (text.includes(MARK)) throw new Error(`crossed: ${text}`)
}

const FIXED = { profile: 'xagent.im.v1', event_kind: 'im.message.received' }
const payloads = fc.record({
  raw_text: words, text: wrapper, content: wrapper, activation_message: wrapper,
  message_id: maybeEmpty(plain), create_time_ms: fc.constantFrom(0, NOW - 1), received_at: fc.constant(NOW),
  account_hint: secret, chat_id: secret, chat_type: fc.constantFrom('private', 'p2p', 'group', 'topic_group', 'supergroup'), group_id: maybeEmpty(secret), to: secret,
  people: fc.record({ from: secret, sender_id: secret }),
  name: fc.constantFrom('', 'Sam', 'from', 'sender_id'),
  reply: fc.record({ tool_id: fc.constantFrom('send', 'feishu_message_reply'), reply_ref: maybeEmpty(secret) }, { requiredKeys: ['tool_id'] }),
  reply_ref: secret, reply_token: secret, context_token: secret, session_id: secret, connector_id: secret, user_connector_id: secret, user_id: secret, role: secret,
  raw_message: fc.record({
    context_token: secret, from_user_id: secret, session_id: secret,
    item_list: fc.array(fc.record({ image_item: fc.record({ aeskey: secret, media: fc.record({ aes_key: secret, encrypt_query_param: secret }) }) }), { maxLength: 2 }),
  }),
  media: fc.array(fc.record({ type: fc.constantFrom('image', 'file'), media_ref: secret, filename: plain, download_url: secret.map((ref) => `/media/refs/${ref}`) }), { maxLength: 2 }),
  extra: elsewhere,
}, { requiredKeys: ['raw_text', 'people', 'name', 'extra'] }).map(({ people, name, extra, ...rest }): JsonObject => {
  const shown = name === 'from' || name === 'sender_id' ? people[name] : name
  return { ...FIXED, ...rest, ...people, ...extra, sender_name: shown, display_name: shown }
})

t.test('a push: of all that it holds only the words cross, and a name that people gave', async (t) => {
  let crossed = 0
  fc.assert(fc.property(payloads, anyPreset, (payload, preset) => {
    // Connectors of other kinds repeat one id in both fields.
    const push = translatePush(preset.name === 'wechat' ? payload : { ...payload, sender_name: idOnce(payload, 'sender_name'), display_name: idOnce(payload, 'display_name') }, {
      preset, rules: { accept: 'all', commands: 'all', senderLine: 'groups' }, tools: new Map(), now: NOW, files: true, freshId: () => 'fresh',
    })
    if (push.kind === 'message') crossed += 1
    clean(northbound(push))
    clean(push.deviations)
  }), RUNS)
  t.ok(crossed > 300, 'most of them have words')
})

const schemas = fc.record({
  type: fc.constant('object'), description: wrapper, additionalProperties: fc.constant(false),
  properties: fc.record({
    text: fc.record({ type: fc.constant('string'), description: wrapper, title: wrapper, $comment: wrapper, default: wrapper, examples: fc.array(wrapper) }, { requiredKeys: ['type'] }),
    connector_channel_id: fc.record({ type: fc.constant('string'), default: secret, enum: fc.array(secret) }),
    reply_ref: fc.record({ type: fc.constant('string'), default: secret }), context_token: fc.record({ const: secret }), recipient_ref: fc.record({ enum: fc.array(secret) }),
    reply_token: fc.record({ examples: fc.array(secret) }), media_ref: fc.record({ type: fc.constant('string'), description: wrapper }),
    connector_card_id: fc.record({ const: secret }),
  }, { requiredKeys: ['text'] }),
  required: fc.subarray(['text', 'connector_channel_id', 'reply_ref', 'media_ref']),
}, { requiredKeys: ['properties'] })
const tools = fc.array(fc.record({
  tool_id: fc.constantFrom('send', 'send_media', 'look', 'wechat_typing', 'feishu_message_reply'), title: fc.oneof(plain, wrapper), description: wrapper, related_skill_ids: fc.array(secret), input_schema: schemas, extra: secret,
}, { requiredKeys: ['tool_id', 'description', 'input_schema'] }), { maxLength: 4 })
const cards = fc.record({
  schema: fc.constant('xagent.connector/v1'), connector_card_id: fc.constant('im.any'), connector_id: secret, build: fc.record({ host: secret }),
  connector: fc.record({ name: plain, version: plain, description: plain, connector_id: secret }),
  supports: fc.record({ profiles: fc.constant(['xagent.im.v1']), targets: fc.array(fc.record({ provider: plain, label: plain, recipient: secret }), { maxLength: 2 }), extra: secret }),
  tools,
  auth_flows: fc.array(fc.record({
    id: plain, type: fc.constantFrom('qr_login', 'form'), title: plain, session_id: secret,
    fields: fc.array(fc.record({ name: plain, secret: fc.constant(true), default_value: secret, extra: secret }), { maxLength: 2 }),
  }), { maxLength: 2 }),
  security: fc.record({ api_key: secret, data_classes: fc.constant(['im.messages']) }), extra: elsewhere,
}, { requiredKeys: ['connector_card_id', 'tools'] })

t.test('a Card and its Skill: no id, no reference, no text that was written for v1', async () => {
  fc.assert(fc.property(cards, anyPreset, fc.boolean(), (legacy, preset, files) => {
    const projected = projectCard(legacy, { preset, build: { build_time: 'now' }, apiKeyRequired: true, files, skill: null })
    clean([projected?.card, projected?.skill, [...(projected?.tools.keys() ?? [])]])
  }), RUNS)
})

const descriptors = fc.record({
  schema: fc.constantFrom('xagent.connection/v1', 'xagent.connection/v2', MARK),
  connection: fc.record({
    connector_card_id: secret, connector_id: secret, connector_channel_id: secret, session_id: secret, profile: secret, profiles: fc.array(secret), status: fc.oneof(fc.constant('connected'), secret),
  }, { requiredKeys: [] }),
  target: fc.record({ provider: plain, label: plain, display_name: plain, account_hint: plain, chat_id: secret, owner: secret }, { requiredKeys: [] }),
  tools: fc.array(fc.record({
    tool_id: fc.oneof(fc.constant('send'), secret), status: fc.oneof(fc.constant('available'), secret), target_permission_state: secret, reason: wrapper, reply_ref: secret,
  }, { requiredKeys: ['tool_id'] }), { maxLength: 3 }),
  extra: elsewhere,
}, { requiredKeys: [] })

const projected = (legacy: JsonObject | null, offline = false) => projectDescriptor(legacy, {
  cardId: 'im.any' as ConnectorCardId, connectorId: 'conn_north' as ConnectorId, channelId: 'cch_north' as ChannelId, tools: ['send' as never],
  trouble: offline ? { status: 'offline', reason: 'connector_unavailable' } : null,
})

t.test('a Descriptor: ids of the gateway\'s own', async () => {
  fc.assert(fc.property(fc.option(descriptors), fc.boolean(), (legacy, offline) => clean(projected(legacy, offline))), RUNS)
})

/** Error texts in the shapes that the three connectors have. */
const errorTexts = fc.tuple(fc.nat(5), secret).map(([shape, id]) => [
  `Post "https://platform.example/bot7000001:${id}/sendMessage": read tcp a:443->b:443: read: connection reset by peer`,
  `response content-type not json, response: StatusCode: 200, Header:map[X-Token:[${id}]], Content-Type: text/html, Body: <html>${id}</html>`,
  `Get "https://cdn.example/c2c/download?encrypted_query_param=${id}&signature=${id}": context deadline exceeded`,
  `open /var/lib/wechat/${id}/media.bin: no such file or directory`,
  `stale context_token=${id} for aes_key:"${id}"`,
  `{"authorization": "Bearer ${id}", "app_secret": "${id}"}`,
][shape] ?? '')

const acks = fc.record({
  status: fc.oneof(fc.constantFrom('pending', 'authenticated', 'canceled'), secret), auth_status: fc.oneof(fc.constant('expired'), secret),
  auth_session_id: secret, connector_channel_id: secret, connector_id: secret, flow_id: secret, expires_at: fc.oneof(fc.nat(), secret), poll_interval_millis: fc.oneof(fc.nat(), secret),
  connection_descriptor: descriptors, qr_code_text: plain, message: errorTexts, extra: elsewhere,
}, { requiredKeys: ['auth_session_id', 'connector_channel_id'] })

t.test('sign-in: neither the connector\'s session nor its channel, not in a message either', async () => {
  fc.assert(fc.property(acks, fc.option(fc.constantFrom('flow')), fc.boolean(), (payload, flowId, named) => {
    const said = named ? { ...payload, message: `session ${payload.auth_session_id} of ${payload.connector_channel_id} waits` } : payload
    const descriptor = payload.connection_descriptor === undefined ? null : projected(payload.connection_descriptor)
    clean(signInAck(said, { channelId: 'cch_north' as ChannelId, sessionId: 'auth_north', flowId, descriptor }))
    clean(cancelAck(said, 'auth_north'))
  }), RUNS)
})

const results = fc.record({
  status: fc.constantFrom('sent', 'queued'), message_id: plain, sent_at: fc.nat(), message_type: fc.constant('text'),
  recipient_ref: secret, chat_id: secret, reply_ref: secret, context_token: secret, media_ref: secret, connector_channel_id: secret, extra: elsewhere,
}, { requiredKeys: [] })

t.test('a relayed result: the preset\'s fields only', async () => {
  fc.assert(fc.property(fc.oneof(results, secret, fc.array(secret)), anyPreset, (result, preset) => clean(relayedResult(result, preset.resultFields))), RUNS)
  // Where a field that may cross holds something else than a plain value, it does not.
  fc.assert(fc.property(fc.dictionary(fc.constantFrom('status', 'message_id', 'sent_at', 'message_type'), fc.oneof(fc.array(secret), fc.record({ id: secret }))), anyPreset, (result, preset) => {
    clean(relayedResult(result, preset.resultFields))
  }), RUNS)
})

t.test('an error: its text is for logs and dead letters, and even there without secrets', async () => {
  fc.assert(fc.property(errorTexts, anyPreset, (message, preset) => {
    const answer = decodePacket(JSON.stringify({ schema: 'xagent.connector.packet/v1', packet_id: 'p', type: 'tool.invoke.ack', error: { code: 'tool_invoke_failed', message } }))
    if (!answer.ok) throw new Error('the answer is a packet')
    clean(toolOutcome(answer.value, { sentWhen: {}, field: null, recipient: null }, preset))
    clean(scrub(message))
  }), RUNS)
})

/** The sender's id where a name is one of the push's ids; else the name. */
function idOnce(payload: JsonObject, field: string): unknown {
  return payload[field] === payload['from'] ? payload['sender_id'] : payload[field]
}
