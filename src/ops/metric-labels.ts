/**
 * The closed sets that label values are taken from (DESIGN §8). A value that comes from outside and is in no set becomes
 * `other`, so that nobody on the wire can grow the number of series.
 */
export { ORPHAN_REASONS, REDELIVERY_CAUSES, type OrphanReason, type RedeliveryCause } from '../core/effect.js'

import type { TurnEnd } from '../core/state.js'

export const OTHER = 'other'

export const DIRECTIONS = ['inbound', 'outbound'] as const
export type Side = 'legacy' | 'xagent'
export const SIDES: readonly Side[] = ['legacy', 'xagent']

/** Why a packet was not let through (DESIGN §6). */
export const FILTER_REASONS = ['unknown_type', 'not_negotiated', 'wrong_direction', 'internal_signal', 'before_hello', 'undecodable', 'no_link'] as const
export type FilterReason = (typeof FILTER_REASONS)[number]

/** Odd but tolerated: fields left out, wire shapes that differ from the seeds. Those of one connector's dialect included. */
export const DEVIATIONS = [
  'forbidden_field', 'unknown_field', 'identity_missing', 'lone_surrogate', 'profile', 'files_key', 'file_null', 'file_without_ref',
  'file_lost', 'ack_without_retryable', 'ack_malformed', 'message_invalid', 'file_without_url', 'delta_invalid', 'delta_ignored', 'activity_invalid',
  'card_without_protocol_version', 'card_without_build', 'card_without_version', 'card_tool',
  'health_without_protocol_version', 'health_without_build', 'health_without_card_id',
  'hello_ack_without_card_id', 'hello_ack_without_connector_id', 'hello_ack_without_version',
  'open_ack_without_envelope_id', 'open_ack_without_payload_id', 'open_ack_without_descriptor', 'open_ack_ids_differ',
  'descriptor_v1', 'descriptor_schema', 'descriptor_without_profile', 'descriptor_status', 'descriptor_without_tools',
] as const

/** How a turn was over (DESIGN §4 Turns rule 5). */
export const TURN_ENDS = ['certain', 'likely', 'timeout', 'unaccepted'] as const satisfies readonly TurnEnd[]
export type { TurnEnd }

export const OVERFLOW_KINDS = ['dead_letters', 'completed', 'delta_streams', 'relayed_packets'] as const
export type OverflowKind = (typeof OVERFLOW_KINDS)[number]

/** Why an xAgent link was refused at its upgrade, or closed by the listener itself. */
export type LinkFault =
  | 'unauthorized' | 'foreign_origin' | 'subprotocol' | 'max_links' | 'links_per_ip' | 'shutting_down'
  | 'binary_frame' | 'frame_too_large' | 'invalid_packets' | 'rate_limited' | 'hello_timeout' | 'internal_error'

export type StoreOp = 'acquire' | 'renew' | 'release' | 'get' | 'list' | 'count' | 'commit' | 'probe'
export type LimitKind = 'ttl_seconds' | 'max_messages' | 'max_bytes' | 'max_channels'

/** The value itself where the set knows it, else `other`. */
export function within(known: ReadonlySet<string>, value: string): string {
  return known.has(value) ? value : OTHER
}

/** Major and minor of a hello's version: what tells versions apart, and all that is taken from the wire. */
export function versionLabel(version: string): string {
  const [, major, minor] = /^(\d{1,2})\.(\d{1,2})(?:\.|$)/.exec(version) ?? []
  return major === undefined || minor === undefined ? OTHER : `${major}.${minor}`
}
