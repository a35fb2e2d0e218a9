/** What a channel wants done. Shells perform effects in order; a commit names the event that follows it. */
import type { ChannelId, LinkId, MessageId, PacketId, ToolId } from '../protocol/ids.js'
import type { JsonObject } from '../protocol/packet.js'
import type { ChannelEvent, Transmission } from './event.js'
import type { Certainty, DeadLetterReason, Direction, InboundOutcome, OutboundOutcome } from './outcome.js'
import type { Change, FileItem, ReplyProof, TypingTarget } from './record.js'
import type { TurnEnd } from './state.js'

/** The answer to one transmission of a final (v2 §7). */
export type Verdict =
  | { readonly status: 'accepted' | 'duplicate' }
  | { readonly status: 'rejected'; readonly code: string; readonly message?: string; readonly retryable: boolean }

/** One message that ended (or was put off): the source of its log line, its counter and its ledger entry. */
export interface Ended {
  readonly type: 'ended'
  readonly direction: Direction
  readonly outcome: InboundOutcome | OutboundOutcome
  readonly reason: DeadLetterReason | null
  readonly code: string | null
  /** Connector's words without secrets, or a reason of ours; for the log only. */
  readonly detail: string | null
  readonly certainty: Certainty
  readonly messageId: MessageId
  readonly originalId: string | null
  readonly attempts: number
  /** Ms from takeover to end. */
  readonly ageMs: number
  /** False only for an outcome that never entered *pending* as a unit of its own (`deferred`). */
  readonly inLedger: boolean
  readonly deadLetterId: string | null
  /** What the dead letter takes of `retention.dead_letter_bytes`; 0 without one. */
  readonly deadLetterBytes: number
}

/** One transmission of a waiting message; `cause` is null for its first. The shell reads the words by `seq`. */
export interface Transmit {
  readonly type: 'transmit'
  readonly link: LinkId
  readonly as: ChannelId
  readonly packetId: PacketId
  readonly seq: number
  readonly messageId: MessageId
  readonly createdAt: number
  readonly cause: RedeliveryCause | null
}

export type Effect =
  | { readonly type: 'received'; readonly direction: Direction }
  | { readonly type: 'find_completed'; readonly arrival: number; readonly messageId: MessageId }
  /** The files of a message that was taken over, or loaded, are to be had from the connector. */
  | { readonly type: 'fetch_files'; readonly seq: number }
  /** Where the files of a waiting message are now: what was not copied yet comes from there. */
  | { readonly type: 'refresh_files'; readonly seq: number; readonly files: readonly FileItem[] }
  /** The file of a step is to be uploaded to the connector. */
  | { readonly type: 'upload'; readonly messageId: MessageId; readonly step: number; readonly ref: string; readonly fields: Readonly<Record<string, string>> }
  | { readonly type: 'find_outbound'; readonly messageId: MessageId; readonly purpose: 'redelivery' | 'abandon' }
  | { readonly type: 'commit'; readonly changes: readonly Change[]; readonly then: ChannelEvent | null }
  | Transmit
  | { readonly type: 'answer'; readonly to: Transmission; readonly messageId: MessageId; readonly verdict: Verdict }
  | { readonly type: 'invoke'; readonly messageId: MessageId; readonly step: number; readonly tool: ToolId; readonly arguments: JsonObject; readonly toolCallId: string; readonly proof: ReplyProof }
  | { readonly type: 'reopen'; readonly messageId: MessageId }
  | { readonly type: 'trim_completed'; readonly kind: 'completed' | 'outbound' }
  | { readonly type: 'wake'; readonly channelId: ChannelId }
  | { readonly type: 'ack_orphaned'; readonly reason: OrphanReason }
  | { readonly type: 'ack_fault' }
  | { readonly type: 'ack_latency'; readonly ms: number }
  | { readonly type: 'auth_doubtful'; readonly reason: string | null }
  /** A dead letter is sent again: it is pending once more, and no dead letter any longer. */
  | { readonly type: 'replayed'; readonly direction: Direction; readonly deadLetterBytes: number }
  | { readonly type: 'turn_ended'; readonly end: TurnEnd; readonly lastedMs: number; readonly accepted: number; readonly finals: number }
  /** Answers a packet with `error` (v2 §10). */
  | { readonly type: 'refuse'; readonly to: Transmission; readonly code: 'delta_sequence_gap' | 'delta_sequence_conflict' }
  /** Shows, or hides, "is typing"; its outcome changes nothing. */
  | { readonly type: 'typing'; readonly target: TypingTarget; readonly on: boolean }
  | { readonly type: 'deviation'; readonly reason: 'delta_ignored' }
  | { readonly type: 'overflow'; readonly kind: 'delta_streams' }
  | Ended

export const REDELIVERY_CAUSES = ['ack_timeout', 'rejected', 'busy', 'link_lost', 'error', 'restart'] as const
export type RedeliveryCause = (typeof REDELIVERY_CAUSES)[number]
export const ORPHAN_REASONS = ['unknown_packet', 'other_message', 'unknown_channel', 'malformed'] as const
export type OrphanReason = (typeof ORPHAN_REASONS)[number]
