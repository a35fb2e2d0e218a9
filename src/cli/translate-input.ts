/** What one line of `translate` holds: a packet, a Card, a health answer, or one of these inside a recorded case. */
import { decodePacket, isObject, nestsAtMost, type JsonObject, type Packet } from '../protocol/packet.js'
import { CARD_SCHEMA, PACKET_SCHEMA } from '../protocol/version.js'

export type Input =
  | { readonly kind: 'packet'; readonly packet: Packet; readonly request: Request | null }
  | { readonly kind: 'card' | 'health'; readonly body: JsonObject }
  | { readonly kind: 'problem'; readonly problem: string }

/** The request that a recorded answer belongs to, as far as it matters here. */
export interface Request {
  readonly type: string
  readonly toolId: string | null
}

/** Deeper documents are no packet of anybody's. */
const MAX_DEPTH = 64
const WANTED = `must be a packet {"schema":"${PACKET_SCHEMA}","packet_id":…,"type":…,"payload":{…}}, a Card {"schema":"${CARD_SCHEMA}",…}, or one of them as {"case":…,"packet":…} or {"case":…,"body":…}`

/** Reads one line. Never throws. */
export function readInput(text: string): Input {
  let raw: unknown
  try {
    raw = JSON.parse(text)
  } catch {
    return problem('not valid JSON')
  }
  if (!isObject(raw)) return problem('not one JSON object')
  if (!nestsAtMost(raw, MAX_DEPTH)) return { kind: 'problem', problem: `nests too deep; must nest at most ${MAX_DEPTH} deep` }
  if (raw['schema'] === undefined && isObject(raw['packet'])) return packetOf(raw['packet'], requestOf(raw['request']))
  if (raw['schema'] === undefined && isObject(raw['body'])) return document(raw['body']) ?? problem('a body that is neither a Card nor a health answer')
  return document(raw) ?? packetOf(raw, null)
}

function document(raw: JsonObject): Input | null {
  if (raw['schema'] === CARD_SCHEMA) {
    return typeof raw['connector_card_id'] === 'string' && raw['connector_card_id'] !== '' ? { kind: 'card', body: raw } : { kind: 'problem', problem: 'a Card without connector_card_id; must name its card id' }
  }
  return raw['schema'] === undefined && raw['type'] === undefined && typeof raw['status'] === 'string' && typeof raw['connector_card_id'] === 'string' ? { kind: 'health', body: raw } : null
}

function packetOf(raw: JsonObject, request: Request | null): Input {
  const packet = decodePacket(JSON.stringify(raw))
  return packet.ok ? { kind: 'packet', packet: packet.value, request } : problem(packet.error.message ?? 'no packet')
}

function requestOf(raw: unknown): Request | null {
  if (!isObject(raw) || typeof raw['type'] !== 'string') return null
  const toolId = isObject(raw['payload']) ? raw['payload']['tool_id'] : null
  return { type: raw['type'], toolId: typeof toolId === 'string' ? toolId : null }
}

const problem = (what: string): Input => ({ kind: 'problem', problem: `${what}; ${WANTED}` })
