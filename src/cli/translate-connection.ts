/** Card, health, hello, open, Descriptor and sign-in, offline: the form in which xAgent gets them. */
import { readDescriptor } from '../legacy/legacy-descriptor.js'
import { refusalOf } from '../legacy/dialect.js'
import { wireError, type ErrorCode } from '../protocol/errors.js'
import type { ChannelId, ConnectorCardId, ConnectorId, ToolId } from '../protocol/ids.js'
import { IM_V2 } from '../protocol/im-v2.js'
import { isObject, type JsonObject, type Packet } from '../protocol/packet.js'
import { PROTOCOL_VERSION } from '../protocol/version.js'
import { projectDescriptor } from '../translate/descriptor.js'
import { cancelAck, signInAck } from '../translate/sign-in.js'
import { channelOf } from './translate-push.js'
import { outgoing, type Translated, type TranslateSession } from './translate-session.js'

/** Stands for the id that the gateway gives its route. */
const CONNECTOR_ID = 'conn_gateway' as ConnectorId
/** Codes of a refused sign-in that xAgent gets as they are; any other is `tool_invoke_failed`. */
const SIGN_IN_CODES: readonly string[] = ['auth_start_failed', 'auth_session_not_found', 'connection_not_found', 'connection_not_authenticated'] satisfies ErrorCode[]

/** Answers of a connector that have a northbound form. */
export const CONNECTION_PACKETS: ReadonlySet<string> = new Set([
  'connector.hello.ack', 'channel.open.ack', 'connection.descriptor.get.ack', 'connection.descriptor.push', 'auth.start.ack', 'auth.status.ack', 'auth.cancel.ack', 'auth.logout.ack',
])

/** The Card that xAgent is served; it decides preset and tools from here on. */
export function cardSeen(session: TranslateSession, body: JsonObject): Translated {
  const projected = session.takeCard(body)
  if (projected === null) return { out: [], notes: ['the Card cannot be projected: it names no connector_card_id'], explain: {} }
  const listed = (Array.isArray(body['tools']) ? body['tools'].filter(isObject) : []).map((tool) => tool['tool_id'])
  const explain = {
    from: 'Card', to: 'Card', preset: session.preset.name, version: 'the connector\'s, and a hash of the projected Card and Skill', skill: projected.skill.id,
    hidden_tools: listed.filter((id) => typeof id !== 'string' || !projected.tools.has(id as ToolId)),
    arguments: Object.fromEntries([...projected.tools].map(([id, tool]) => [id, Object.fromEntries(tool.arguments)])),
    left_out: [...Object.keys(body).filter((key) => !Object.hasOwn(projected.card, key)), 'tools[].related_skill_ids', 'tools[].output_schema'].map((field) => ({ field, why: 'rewritten or not whitelisted' })),
  }
  const notes = projected.spoken === IM_V2 ? ['the Card lists xagent.im.v2: such a connector is relayed, and nothing of it is translated'] : []
  return { out: [JSON.stringify(projected.card)], notes, explain }
}

/** Merged from Card and build, never copied: a version that xAgent does not know takes a connector offline. */
export function healthSeen(session: TranslateSession, body: JsonObject): Translated {
  const { card } = session
  const explain = { from: 'health', to: card === null ? null : 'health', left_out: Object.keys(body).map((field) => ({ field, why: 'said anew by the gateway' })) }
  if (card === null) return { out: [], notes: ['health needs the Card before it: its version is the projected Card\'s'], explain }
  const health = { status: 'ok', connector_card_id: card.cardId, connector_card_version: card.version, protocol_version: PROTOCOL_VERSION, build: session.build }
  return { out: [JSON.stringify(health)], notes: [], explain }
}

/** One of CONNECTION_PACKETS. */
export function connectionSeen(session: TranslateSession, packet: Packet, line: number): Translated {
  const refusal = refusalOf(packet)
  const explain = { from: packet.type, to: packet.type, left_out: leftOut(packet.payload) }
  const ids = { ...(packet.requestId !== undefined && { requestId: packet.requestId }), ...(packet.replyTo !== undefined && { replyTo: packet.replyTo }), ...channelOf(packet) }
  if (refusal === null) return { out: [outgoing(line, packet, { ...ids, type: packet.type, payload: payloadOf(session, packet) })], notes: [], explain }
  if (packet.type === 'connector.hello.ack') return { out: [], notes: [`${packet.type}: the connector refuses the gateway; xAgent is answered by the gateway itself`], explain: { ...explain, to: null } }
  const code: ErrorCode = !packet.type.startsWith('auth.') ? 'connector_channel_unavailable' : SIGN_IN_CODES.includes(refusal.code) ? (refusal.code as ErrorCode) : 'tool_invoke_failed'
  return { out: [outgoing(line, packet, { ...ids, type: packet.type, payload: {}, error: wireError(code, 'the connector refused the request') })], notes: [], explain: { ...explain, left_out: [{ field: 'error.message', why: 'the connector\'s own words may hold tokens' }] } }
}

function payloadOf(session: TranslateSession, packet: Packet): JsonObject {
  const { payload } = packet
  const channelId = packet.channelId ?? (typeof payload['connector_channel_id'] === 'string' ? payload['connector_channel_id'] : '')
  const descriptor = payload['connection_descriptor'] === undefined ? null : project(session, payload['connection_descriptor'], channelId)
  switch (packet.type) {
    case 'connector.hello.ack': return { connector_card_id: payload['connector_card_id'] ?? session.card?.cardId ?? '', connector_id: CONNECTOR_ID, protocol_version: PROTOCOL_VERSION }
    case 'channel.open.ack': return { connector_channel_id: channelId, connection_descriptor: descriptor ?? project(session, null, channelId) }
    case 'auth.cancel.ack': return cancelAck(payload, session.signIn(payload['auth_session_id']))
    case 'auth.logout.ack': return { status: 'ok', connection_descriptor: descriptor ?? project(session, null, channelId) }
    case 'auth.start.ack': case 'auth.status.ack': {
      const flowId = typeof payload['flow_id'] === 'string' ? payload['flow_id'] : null
      return signInAck(payload, { channelId: channelId as ChannelId, sessionId: session.signIn(payload['auth_session_id']), flowId, descriptor })
    }
    default: return { connection_descriptor: descriptor ?? project(session, null, channelId) }
  }
}

/** With the tools of the Card; where none was seen, with those that the Descriptor names and the preset shows. */
function project(session: TranslateSession, said: unknown, channelId: string): JsonObject {
  const legacy = readDescriptor(said)
  const named = (Array.isArray(legacy?.body['tools']) ? legacy.body['tools'].filter(isObject) : []).flatMap((tool) => (typeof tool['tool_id'] === 'string' ? [tool['tool_id']] : []))
  const tools = session.card === null ? named.filter((id) => !session.preset.hiddenTools.includes(id)) : [...session.card.tools.keys()]
  return projectDescriptor(legacy?.body ?? null, {
    cardId: session.card?.cardId ?? legacy?.cardId ?? ('' as ConnectorCardId), connectorId: CONNECTOR_ID, channelId: channelId as ChannelId, tools: tools as ToolId[], trouble: null,
  })
}

function leftOut(payload: JsonObject): { field: string; why: string }[] {
  const replaced = [
    ...(typeof payload['auth_session_id'] === 'string' ? [{ field: 'auth_session_id', why: 'replaced by the gateway\'s own', secret: true }] : []),
    ...(typeof payload['connector_id'] === 'string' ? [{ field: 'connector_id', why: 'replaced by the gateway\'s own' }] : []),
  ]
  const descriptor = payload['connection_descriptor']
  return isObject(descriptor) ? [...replaced, { field: 'connection_descriptor.connection', why: 'ids are the gateway\'s, schema and profiles are v2\'s' }] : replaced
}
