/**
 * Why a link ended. `unreachable`: nothing answered the dial. `refused`: it was answered, but not with a usable link.
 * `denied`: refused for a reason that a moment's wait does not change (key, card id). `lost`: it was open. `closed`: by us.
 */
export type EndCause = 'unreachable' | 'refused' | 'denied' | 'lost' | 'closed'

export interface LinkEnd {
  readonly cause: EndCause
  /** For logs: our own words, HTTP statuses and error codes; never a text of the connector, which can hold secrets. */
  readonly reason: string
}

/** No dial was made: hello needs the id that stands in the Card. */
export const CARD_UNKNOWN: LinkEnd = { cause: 'unreachable', reason: 'the Card of the connector is not known yet' }

const DENIED_CODES: readonly string[] = [
  'connector_card_id_mismatch', 'unauthorized', 'protocol_version_unsupported', 'profile_not_supported',
]

/** The end of a link whose hello was answered with this error code. */
export function helloRefused(code: string): LinkEnd {
  const shown = /^[\w.-]{1,64}$/.test(code) ? code : 'an unreadable code'
  return { cause: DENIED_CODES.includes(code) ? 'denied' : 'refused', reason: `connector.hello was refused: ${shown}` }
}

/** The end of a link whose upgrade was answered with an HTTP status. Redirects are refusals: keys go nowhere else. */
export function upgradeRefused(status: number): LinkEnd {
  const cause = status === 401 || status === 403 ? 'denied' : 'refused'
  return { cause, reason: `the WebSocket upgrade was answered with HTTP ${status}` }
}
