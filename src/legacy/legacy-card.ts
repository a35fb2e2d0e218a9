/** Card and health of both dialects, read for what the gateway decides by; what xAgent sees is projected elsewhere. */
import { err, ok, wireError, type Result } from '../protocol/errors.js'
import type { ConnectorCardId, ProfileId, ToolId } from '../protocol/ids.js'
import { isId, isObject, type JsonObject } from '../protocol/packet.js'
import { CARD_SCHEMA } from '../protocol/version.js'
import { deviationsOf, idOrNull, isKeepable } from './lenient.js'

export interface LegacyCard {
  readonly cardId: ConnectorCardId
  /** `connector.version`; changes whenever tools, flows or profiles change. Null = not said. */
  readonly version: string | null
  /** Null in the 1.0 dialect. */
  readonly protocolVersion: string | null
  readonly profiles: readonly ProfileId[]
  /** Unique, in the Card's order. */
  readonly toolIds: readonly ToolId[]
  /** As it came, for the projection. */
  readonly body: JsonObject
  readonly deviations: readonly string[]
}

export interface LegacyHealth {
  /** The connector says `ok` of itself. */
  readonly ok: boolean
  readonly cardId: ConnectorCardId | null
  /** Differs from the Card's when the Card is to be fetched again. */
  readonly cardVersion: string | null
  /** Null in the 1.0 dialect. */
  readonly protocolVersion: string | null
  readonly deviations: readonly string[]
}

/** Reads a Card. `invalid_packet` when it lacks what nothing can be done without: its schema, its id, a profile. */
export function readCard(body: JsonObject): Result<LegacyCard> {
  if (body['schema'] !== CARD_SCHEMA) return err(wireError('invalid_packet', `the Card's schema is not "${CARD_SCHEMA}"`))
  if (!isKeepable(body)) return err(wireError('invalid_packet', 'the Card nests too deep'))
  const cardId = idOrNull(body['connector_card_id'])
  if (cardId === null) return err(wireError('invalid_packet', 'the Card has no connector_card_id'))
  const supports = isObject(body['supports']) ? body['supports'] : {}
  const profiles = listOf(supports['profiles']).filter(isId)
  if (profiles.length === 0) return err(wireError('invalid_packet', 'the Card lists no profile'))
  const connector = isObject(body['connector']) ? body['connector'] : {}
  const tools = listOf(body['tools']).map((tool) => (isObject(tool) ? idOrNull(tool['tool_id']) : null))
  const toolIds = new Set(tools.filter((id) => id !== null))
  const version = idOrNull(connector['version'])
  const protocolVersion = idOrNull(body['protocol_version'])
  return ok({
    cardId: cardId as ConnectorCardId,
    version,
    protocolVersion,
    profiles: [...new Set(profiles)] as string[] as ProfileId[],
    toolIds: [...toolIds] as string[] as ToolId[],
    body,
    deviations: deviationsOf({
      card_without_protocol_version: protocolVersion === null,
      card_without_build: !isObject(body['build']),
      card_without_version: version === null,
      card_tool: toolIds.size !== tools.length,
    }),
  })
}

/** Reads a health answer; total, because a connector that answers 200 is alive whatever it says. */
export function readHealth(body: JsonObject): LegacyHealth {
  const protocolVersion = idOrNull(body['protocol_version'])
  const cardId = idOrNull(body['connector_card_id'])
  return {
    ok: body['status'] === 'ok',
    cardId: cardId as ConnectorCardId | null,
    cardVersion: idOrNull(body['connector_card_version']),
    protocolVersion,
    deviations: deviationsOf({
      health_without_protocol_version: protocolVersion === null,
      health_without_build: !isObject(body['build']),
      health_without_card_id: cardId === null,
    }),
  }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
