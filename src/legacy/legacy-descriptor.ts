/** Connection Descriptors of both schemas, read for what the gateway decides by; what xAgent sees is projected elsewhere. */
import type { ConnectorCardId, LegacyChannelId, LegacyConnectorId, ProfileId } from '../protocol/ids.js'
import { isId, isObject, type JsonObject } from '../protocol/packet.js'
import { DESCRIPTOR_SCHEMA, LEGACY_DESCRIPTOR_SCHEMA } from '../protocol/version.js'
import { statusOf } from '../translate/descriptor.js'
import { deviationsOf, idOrNull, isKeepable } from './lenient.js'

export interface LegacyDescriptor {
  readonly cardId: ConnectorCardId | null
  readonly connectorId: LegacyConnectorId | null
  readonly channelId: LegacyChannelId | null
  /** From `connection.profiles[]`, or the single `connection.profile` of the older schema. */
  readonly profiles: readonly ProfileId[]
  /** One of the protocol's statuses; `created` when none of them is stated. */
  readonly status: string
  /** As it came, for the projection. */
  readonly body: JsonObject
  readonly deviations: readonly string[]
}

/** Reads a Descriptor; null when the value is none (no object, without `connection`, or nested absurdly deep). */
export function readDescriptor(body: unknown): LegacyDescriptor | null {
  if (!isObject(body) || !isObject(body['connection']) || !isKeepable(body)) return null
  const connection = body['connection']
  const profiles = profilesOf(connection)
  const status = statusOf(body)
  return {
    cardId: idOrNull(connection['connector_card_id']) as ConnectorCardId | null,
    connectorId: idOrNull(connection['connector_id']) as LegacyConnectorId | null,
    channelId: idOrNull(connection['connector_channel_id']) as LegacyChannelId | null,
    profiles,
    status,
    body,
    deviations: deviationsOf({
      descriptor_v1: body['schema'] === LEGACY_DESCRIPTOR_SCHEMA,
      descriptor_schema: body['schema'] !== LEGACY_DESCRIPTOR_SCHEMA && body['schema'] !== DESCRIPTOR_SCHEMA,
      descriptor_without_profile: profiles.length === 0,
      descriptor_status: connection['status'] !== status,
      descriptor_without_tools: !Array.isArray(body['tools']),
    }),
  }
}

function profilesOf(connection: JsonObject): readonly ProfileId[] {
  const list = Array.isArray(connection['profiles']) ? connection['profiles'] : [connection['profile']]
  return [...new Set(list.filter(isId))] as string[] as ProfileId[]
}
