/** `connector.hello` from xAgent (PROTOCOL "Packets", DESIGN §6): who may come in, and with which profiles. */
import { err, ok, wireError, type Result } from '../protocol/errors.js'
import type { ConnectorCardId, ConnectorId, ProfileId } from '../protocol/ids.js'
import type { JsonObject } from '../protocol/packet.js'
import { PROTOCOL_VERSION, isAdmittedVersion } from '../protocol/version.js'

export interface Hello {
  readonly version: string
  /** Profiles of the Card that xAgent supports too: what the link negotiates from. */
  readonly profiles: readonly ProfileId[]
  /** Never an error when it differs from ours. */
  readonly connectorId: ConnectorId | null
}

/** Checks a hello against the Card. Errors: card mismatch, version missing or too old, no common profile. */
export function checkHello(payload: JsonObject, card: { readonly cardId: ConnectorCardId; readonly profiles: readonly ProfileId[] }): Result<Hello> {
  if (payload['connector_card_id'] !== card.cardId) return err(wireError('connector_card_id_mismatch'))
  const version = payload['protocol_version']
  if (typeof version !== 'string' || !isAdmittedVersion(version)) {
    return err(wireError('protocol_version_unsupported', `protocol_version must be ${PROTOCOL_VERSION} or newer`))
  }
  const supported = payload['supported_profiles']
  const profiles = card.profiles.filter((profile) => Array.isArray(supported) && supported.includes(profile))
  if (profiles.length === 0) return err(wireError('profile_not_supported', `supported_profiles must name ${card.profiles.join(' or ')}`))
  const connectorId = payload['connector_id']
  return ok({ version, profiles, connectorId: typeof connectorId === 'string' && connectorId !== '' ? (connectorId as ConnectorId) : null })
}
