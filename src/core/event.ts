/** What can happen to a channel. Shells turn I/O into these; the clock comes as a separate argument. */
import type { ChannelId, LinkId, MessageId, PacketId } from '../protocol/ids.js'
import type { AckVerdict } from '../protocol/im-v2.js'
import type { TranslatedPush } from '../translate/message-push.js'
import type { ToolOutcome } from '../translate/tool-outcome.js'
import type { RedeliveryCause } from './effect.js'
import type { CompletedRecord, DeadLetterRecord, OutboundRecord } from './record.js'

/** One transmission of a final: where its ack goes. `as` is the channel id that this link uses. */
export interface Transmission {
  readonly link: LinkId
  readonly as: ChannelId
  readonly packetId: PacketId
}

/** A final as it came, checked (v2 §5). */
export interface ArrivedFinal {
  /** Null for one that a person sends again. */
  readonly from: Transmission | null
  readonly messageId: MessageId
  readonly text: string
  readonly files: readonly FinalFile[]
  /** Null while a file's bytes are not there any more: then nothing can be compared. */
  readonly contentHash: string | null
}

/** A file of a final: bytes that were uploaded to the gateway for this channel. */
export interface FinalFile {
  readonly ref: string
  /** What the bytes are; null = there are none under this reference. */
  readonly stored: { readonly byteSize: number; readonly mimeType: string; readonly filename: string } | null
}

/** How the upload of a step's file ended. A failure is never in doubt: nothing has reached the person. */
export type UploadResult = { readonly ok: true; readonly ref: string } | { readonly ok: false; readonly temporary: boolean; readonly code: string }

/** What came of opening a channel again: whether somebody is signed in there, or no answer. */
export type Reopened = 'connected' | 'signed_out' | 'no_answer'

/** Why a frame did not leave: buffer full, over the frame limit, link gone, words not to be had from the store now, or never. */
export type SendFailure = 'full' | 'too_large' | 'closed' | 'store_unavailable' | 'body_lost'

export type ChannelEvent =
  // inbound, in stage order
  /** `takenAt` is the moment its frame was decoded: takeover (DESIGN §4). */
  | { readonly type: 'pushed'; readonly push: TranslatedPush; readonly bytes: number; readonly takenAt: number }
  | { readonly type: 'completed_found'; readonly arrival: number; readonly completed: CompletedRecord | null }
  | { readonly type: 'taken_durable'; readonly seq: number }
  /** Its files are there or lost; `lost` holds a reason for each lost one. */
  | { readonly type: 'files_settled'; readonly seq: number; readonly lost: readonly string[] }
  | { readonly type: 'opened'; readonly link: LinkId; readonly as: ChannelId }
  | { readonly type: 'left'; readonly link: LinkId }
  | { readonly type: 'flush_allowed' }
  | { readonly type: 'send_failed'; readonly seq: number; readonly reason: SendFailure; readonly cause: RedeliveryCause | null }
  | { readonly type: 'drained'; readonly link: LinkId }
  | { readonly type: 'acked'; readonly replyTo: PacketId; readonly verdict: AckVerdict }
  | { readonly type: 'error_answered'; readonly replyTo: PacketId; readonly code: string }
  /** The place of a message in its turn is durable: its frame may leave. */
  | { readonly type: 'turn_stored'; readonly seq: number }
  /** Somebody signed in or out: what was written before says nothing about who is there now. */
  | { readonly type: 'rebound' }
  // outbound, in stage order
  | { readonly type: 'final_received'; readonly final: ArrivedFinal }
  | { readonly type: 'final_invalid'; readonly from: Transmission; readonly messageId: MessageId; readonly message: string }
  | { readonly type: 'delta_received'; readonly from: Transmission; readonly messageId: MessageId; readonly sequence: number; readonly text: string }
  | { readonly type: 'activity_received'; readonly status: 'thinking' | 'tool' | 'idle' }
  /** A person sends a dead letter again (its words were read from the store). */
  | { readonly type: 'replayed'; readonly letter: DeadLetterRecord; readonly text: string }
  | { readonly type: 'outbound_found'; readonly messageId: MessageId; readonly purpose: 'redelivery' | 'abandon'; readonly record: OutboundRecord | null }
  | { readonly type: 'lookup_failed'; readonly messageId: MessageId; readonly purpose: 'redelivery' | 'abandon' }
  | { readonly type: 'legacy_changed'; readonly open: boolean }
  | { readonly type: 'uploaded'; readonly messageId: MessageId; readonly step: number; readonly result: UploadResult }
  | { readonly type: 'step_started'; readonly messageId: MessageId; readonly step: number }
  | { readonly type: 'step_answered'; readonly messageId: MessageId; readonly step: number; readonly outcome: ToolOutcome }
  | { readonly type: 'reopened'; readonly messageId: MessageId; readonly result: Reopened }
  | { readonly type: 'reply_stored'; readonly messageId: MessageId }
  | { readonly type: 'late_answer'; readonly messageId: MessageId; readonly step: number; readonly outcome: ToolOutcome }
  // a deadline that an earlier step named
  | { readonly type: 'look' }
