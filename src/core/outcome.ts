/**
 * The closed table of outcomes: the only place that says how a message can end, and what follows from it. Ledger, metric
 * labels, log lines, dead letters and docs/outcomes are all read from here (DESIGN §2, §8).
 */

export interface OutcomeRow {
  /** A terminal outcome ends the message: it leaves *pending* and counts as *ended* in the ledger. */
  readonly terminal: boolean
  /** Whether the same message may be transmitted again afterwards. */
  readonly redeliver: boolean
  /** Dead-letter reasons this outcome can have; empty = it leaves none. */
  readonly deadLetter: readonly DeadLetterReason[]
  /** Log level of the one line that each outcome gets. */
  readonly level: 'info' | 'warn'
  readonly text: string
}

export type DeadLetterReason =
  | 'expired' | 'capacity_exceeded' | 'empty_message' | 'conflict' | 'rejected' | 'max_attempts' | 'message_too_large'
  | 'unknown_channel' | 'files_not_supported'
  | 'delivery_in_doubt' | 'reply_target_moved' | 'no_reply_target' | 'abandoned_partial'

/** Inbound: one row per way in which a push can end. The ledger's unit is a push. */
export const INBOUND_OUTCOMES = {
  accepted: { terminal: true, redeliver: false, deadLetter: [], level: 'info', text: 'xAgent accepted it' },
  duplicate: { terminal: true, redeliver: false, deadLetter: [], level: 'info', text: 'xAgent had already accepted it (its ack was lost)' },
  absorbed: { terminal: true, redeliver: false, deadLetter: [], level: 'info', text: 'the connector pushed the same message again' },
  rejected: { terminal: true, redeliver: false, deadLetter: ['rejected', 'max_attempts'], level: 'warn', text: 'xAgent refused it for good, or too often' },
  expired: { terminal: true, redeliver: false, deadLetter: ['expired'], level: 'warn', text: 'its retention ended before xAgent accepted it' },
  evicted: { terminal: true, redeliver: false, deadLetter: ['capacity_exceeded'], level: 'warn', text: 'capacity was exhausted and it was the oldest, or the newest where the newest are refused' },
  conflict: { terminal: true, redeliver: false, deadLetter: ['conflict'], level: 'warn', text: 'another message with the same id but other content came before it' },
  empty: { terminal: true, redeliver: false, deadLetter: ['empty_message'], level: 'warn', text: 'nothing was left to say' },
  too_large: { terminal: true, redeliver: false, deadLetter: ['message_too_large'], level: 'warn', text: 'it exceeds the largest frame xAgent is sent' },
  not_forwarded: { terminal: true, redeliver: false, deadLetter: [], level: 'info', text: 'the configuration or the preset keeps it from xAgent' },
  unknown_channel: { terminal: true, redeliver: false, deadLetter: ['unknown_channel'], level: 'warn', text: 'it came on a channel that nobody has opened' },
  files_not_supported: { terminal: true, redeliver: false, deadLetter: ['files_not_supported'], level: 'warn', text: 'it holds only files, where none are carried' },
} as const satisfies Record<string, OutcomeRow>

/** Outbound: one row per answer that a final can get. The ledger's unit is a final's message_id. */
export const OUTBOUND_OUTCOMES = {
  accepted: { terminal: true, redeliver: false, deadLetter: [], level: 'info', text: 'every step was sent and confirmed by the connector' },
  rejected: { terminal: true, redeliver: false, deadLetter: ['rejected', 'no_reply_target', 'reply_target_moved', 'files_not_supported'], level: 'warn', text: 'certainly not sent, and sending again would not help' },
  in_doubt: { terminal: true, redeliver: false, deadLetter: ['delivery_in_doubt'], level: 'warn', text: 'handed over, outcome unknown: a person decides' },
  conflict: { terminal: true, redeliver: false, deadLetter: [], level: 'warn', text: 'the same message_id came with other content' },
  invalid: { terminal: true, redeliver: false, deadLetter: [], level: 'warn', text: 'the packet is not a valid final' },
  abandoned: { terminal: true, redeliver: false, deadLetter: ['abandoned_partial'], level: 'warn', text: 'refused as temporary and never redelivered; some parts may have been sent' },
  deferred: { terminal: false, redeliver: true, deadLetter: [], level: 'info', text: 'refused as temporary: xAgent redelivers it' },
} as const satisfies Record<string, OutcomeRow>

export type InboundOutcome = keyof typeof INBOUND_OUTCOMES
export type OutboundOutcome = keyof typeof OUTBOUND_OUTCOMES
export type Direction = 'inbound' | 'outbound'

/** How sure the gateway is of what it reports: `unknown` = handed over without an answer. */
export type Certainty = 'certain' | 'unknown'
