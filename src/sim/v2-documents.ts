/** Card, health and Descriptor of a simulated connector of protocol 3.0 (PROTOCOL "Connector Card", "Connection Descriptor"). */
import type { JsonObject } from '../protocol/packet.js'

const BUILD = { version: '1.0.0', git_tag: 'v1.0.0', git_rev: '0000000', build_time: '2026-01-01T00:00:00Z' } as const

/** `connector.version` changes with the profiles, as the protocol asks. */
const versionOf = (profiles: readonly string[]): string => `1.0.0-${profiles.join('-')}`

export function v2Card(cardId: string, profiles: readonly string[], tools: readonly JsonObject[]): JsonObject {
  return {
    schema: 'xagent.connector/v1', protocol_version: '3.0', build: BUILD, connector_card_id: cardId,
    connector: { name: 'Simulated', version: versionOf(profiles) },
    supports: { target_types: ['im'], profiles, targets: [{ target_type: 'im', provider: 'simulated', label: 'Simulated' }] },
    tools, security: { trust_level: 'trusted', api_key_required: true, data_classes: ['messages'] },
  }
}

export function v2Health(cardId: string, profiles: readonly string[]): JsonObject {
  return { status: 'ok', connector_card_id: cardId, connector_card_version: versionOf(profiles), protocol_version: '3.0', build: BUILD }
}

/** Somebody has been signed in on every channel from the beginning. */
export function v2Descriptor(cardId: string, channelId: string, profiles: readonly string[], tools: readonly JsonObject[]): JsonObject {
  return {
    schema: 'xagent.connection/v2',
    connection: { connector_card_id: cardId, connector_id: 'instance_v2', connector_channel_id: channelId, target_type: 'im', profiles, status: 'connected' },
    target: { provider: 'simulated', label: 'Simulated', display_name: 'Sam' },
    tools: tools.map((tool) => ({ tool_id: tool['tool_id'], status: 'available' })),
  }
}
