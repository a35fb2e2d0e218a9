/** The one line that each message's end gets (DESIGN §2: every outcome is a value in one closed table). */
import type { Ended } from '../core/effect.js'
import { INBOUND_OUTCOMES, OUTBOUND_OUTCOMES, type InboundOutcome, type OutboundOutcome, type OutcomeRow } from '../core/outcome.js'
import type { ChannelId, RouteName } from '../protocol/ids.js'
import type { Logger } from './logger.js'

/**
 * Logs how a message ended (or was put off), at the level its outcome has in the table: ids, reason, code and certainty.
 * There is no field for words, at any level. `channelId` is null where no northbound channel is known.
 */
export function logOutcome(logger: Logger, where: { readonly route: RouteName; readonly channelId: ChannelId | null }, ended: Ended): void {
  const { level, text } = rowOf(ended)
  const { type: _type, inLedger: _inLedger, deadLetterBytes: _bytes, ...fields } = ended
  const known = Object.entries({ ...where, ...fields, ageMs: Math.round(ended.ageMs) }).filter(([, value]) => value !== null)
  logger[level](Object.fromEntries(known), `${ended.direction} ${ended.outcome}: ${text}`)
}

function rowOf({ direction, outcome }: Ended): OutcomeRow {
  return direction === 'inbound' ? INBOUND_OUTCOMES[outcome as InboundOutcome] : OUTBOUND_OUTCOMES[outcome as OutboundOutcome]
}
