/**
 * Every error code that the gateway itself puts on the wire. `PROTOCOL` codes are the common protocol's, the rest are ours.
 * Nobody matches on a message's text, except a preset that classifies what a legacy connector says.
 */
export const ERROR_CODES = {
  invalid_packet: 'the packet is not one JSON object of the envelope schema, or its payload does not fit its type',
  hello_required: 'a packet came before connector.hello was accepted',
  connector_card_id_mismatch: 'connector_card_id is not the one this Base URL serves',
  protocol_version_unsupported: 'protocol_version is missing or older than 3.0',
  profile_not_supported: 'supported_profiles names no profile that this connector serves',
  connector_unavailable: 'the fronted connector has never been reached, or cannot take the call now',
  channel_not_open: 'this link has not opened the channel',
  connector_channel_id_required: 'the packet needs a connector_channel_id',
  connector_channel_unavailable: 'the channel cannot be served while the fronted connector is away',
  connection_not_found: 'the fronted connector does not know the channel',
  connection_not_authenticated: 'the channel is not signed in',
  auth_session_not_found: 'the sign-in session is unknown or over',
  auth_start_failed: 'the fronted connector refused to start the sign-in',
  tool_invoke_failed: 'the tool call failed',
  tool_not_available: 'the Card does not list this tool',
  unsupported_packet: 'no catalog entry lists this request',
  rate_limited: 'too many packets on this link',
  not_yet: 'this version does not offer it yet',
  delivery_in_doubt: 'the message was handed over and its outcome is unknown; sending again could send twice',
  target_delivery_failed: 'the target platform refused the message',
  target_temporarily_unavailable: 'the target platform certainly did not send the message; it can be tried again',
  reply_target_moved: 'the connector would send it to somebody else, who wrote since',
  abandoned_partial: 'it was refused for now, did not come again in time, and is given up',
  no_reply_target: 'nothing tells whom this message answers',
  file_not_available: 'there is no file under this file_ref for this channel, or it has expired',
  file_refused: 'the connector does not take this file: its size or its kind',
  message_id_conflict: 'the same message_id came with other content',
  message_too_large: 'the message exceeds the largest frame that xAgent is sent',
  files_not_supported: 'the connector has no tool that sends files',
  delta_sequence_gap: 'a sequence is missing before this delta; the final message is not affected',
  delta_sequence_conflict: 'this sequence came before with other text; the final message is not affected',
  busy: 'too many messages wait on this channel',
  store_unavailable: 'the gateway cannot store anything now',
  shutting_down: 'the gateway is stopping',
} as const

export type ErrorCode = keyof typeof ERROR_CODES

/** An error as it stands in a packet (PROTOCOL envelope): stable code, message for logs and never a secret. */
export interface WireError {
  readonly code: string
  readonly message?: string
}

/** The wire error of one of our own codes, with its standard text unless another is given. */
export function wireError(code: ErrorCode, message?: string): WireError {
  return { code, message: message ?? ERROR_CODES[code] }
}

/** Expected outcomes are values: every function that can fail on bad input answers with one of these. */
export type Result<T, E = WireError> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: E }

export const ok = <T>(value: T): { ok: true; value: T } => ({ ok: true, value })
export const err = <E>(error: E): { ok: false; error: E } => ({ ok: false, error })

/** The configuration cannot be used; `problems` are complete lines for a person (key, line, what would be right). */
export class ConfigError extends Error {
  readonly code = 'config_invalid'
  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'))
  }
}

export type StoreErrorCode = 'store_unavailable' | 'fence_lost' | 'lease_held' | 'record_unreadable' | 'record_newer'

/** The store could not do what it was asked to. `fence_lost` and `lease_held` mean that another process owns the route. */
export class StoreError extends Error {
  constructor(readonly code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
  }
}
