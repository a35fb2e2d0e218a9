/** The state of one channel, and what all channels of a route share. Owned by core/; shells only read counts. */
import type { CardTools } from '../translate/reply-target.js'
import type { Preset } from '../translate/preset.js'
import type { ChannelId, ConversationKey, LinkId, MessageId } from '../protocol/ids.js'
import type { TranslatedPush } from '../translate/message-push.js'
import type { ArrivedFinal, Transmission } from './event.js'
import type { Ended, RedeliveryCause } from './effect.js'
import type { CompletedRecord, DeadLetterRecord, JournalEntry, OutboundRecord, ReplyTarget } from './record.js'
import type { Certainty } from './outcome.js'

/** Limits of `retention` and `delivery` as the core uses them; DESIGN §8 gives their defaults. */
export interface ChannelLimits {
  readonly ttlMs: number
  readonly maxMessages: number
  readonly maxBytes: number
  readonly overflow: 'evict_oldest' | 'refuse_newest'
  readonly window: number
  readonly ackTimeoutMs: number
  readonly backoffInitialMs: number
  readonly backoffMaxMs: number
  /** 0 = no limit. */
  readonly maxAttempts: number
  readonly outboundQueue: number
  readonly outboundWaitMs: number
}

/** Shared by the channels of a route; `budget` by all routes of the process. */
export interface Shared {
  readonly limits: ChannelLimits
  dialect: { readonly preset: Preset; readonly tools: CardTools }
  readonly budget: Budget
  readonly gate: FlushGate
  /** Names this run in packet ids, so that an ack of an earlier run is not mistaken for one of this. */
  readonly run: string
  nextSeq: number
  nextDeadLetter: number
  /** State of the pseudo-random sequence that jitter is drawn from. */
  jitterSeed: number
}

/** `limits.max_pending_bytes`: what may wait in the whole process. */
export interface Budget {
  usedBytes: number
  readonly maxBytes: number
}

/** `delivery.flush_channels`: how many channels work off a backlog at once. */
export interface FlushGate {
  readonly limit: number
  readonly holders: Set<ChannelId>
  readonly waiting: Set<ChannelId>
}

/** A waiting message: what the core needs to decide, without its words. */
export interface Waiting {
  readonly channelId: ChannelId
  readonly seq: number
  readonly order: number
  readonly messageId: MessageId
  readonly originalId: string | null
  readonly conversation: ConversationKey | null
  target: ReplyTarget | null
  readonly contentHash: string
  readonly bytes: number
  readonly createdAt: number
  readonly takenAt: number
  readonly expiresAt: number
  readonly files: number
  preparing: number
  readonly preset: string
  readonly journal: JournalEntry[]
  /** Transmissions in this run: their numbers make the packet ids. */
  transmissions: number
  attempts: number
  rejections: number
  /** Failures in a row since the channel was last opened: the exponent of the backoff. */
  failures: number
  certainty: Certainty
  lastCode: string | null
  durable: boolean
  inFlight: { readonly link: LinkId; readonly sentAt: number; readonly ackBy: number } | null
  notBefore: number
  cause: RedeliveryCause | null
  ended: boolean
}

/** A push between arrival and the answer whether its id is known. */
export interface Arrival {
  readonly number: number
  readonly push: TranslatedPush
  readonly bytes: number
  readonly at: number
  /** undefined = not answered yet. */
  completed: CompletedRecord | null | undefined
}

/** A final in the channel's line. */
export interface FinalJob {
  readonly final: ArrivedFinal
  readonly repeats: Transmission[]
  readonly waitUntil: number
  phase: 'looking' | 'queued' | 'running' | 'storing'
  record: OutboundRecord | null
  step: number
  reopened: boolean
  /** What the answer will be once the record of the end is durable. */
  ending: JobEnding | null
}

export type JobEnding =
  | { readonly kind: 'accepted'; readonly ended: Ended }
  | { readonly kind: 'refused' | 'deferred'; readonly code: string; readonly ended: Ended }

export interface Channel {
  readonly id: ChannelId
  /** The xAgent link that has the channel, and the id it uses for it. */
  link: { readonly id: LinkId; readonly as: ChannelId } | null
  /** Whether the legacy side has the channel open, so that calls can be made. */
  legacyOpen: boolean
  /** The link's buffer is full: nothing is sent until it drains. */
  congested: boolean
  /** Highest sequence that waited when the channel was opened: until then it works off a backlog. */
  backlogUntil: number
  // inbound
  readonly arrivals: Arrival[]
  nextArrival: number
  /** In order of delivery. Ended ones stay until they reach the front. */
  readonly waiting: Waiting[]
  readonly byId: Map<MessageId, Waiting>
  readonly bySeq: Map<number, Waiting>
  readonly byConversation: Map<ConversationKey | null, Set<Waiting>>
  /** In order of expiry. Ended ones stay until they reach the front. */
  readonly expiries: Waiting[]
  readonly inFlight: Set<Waiting>
  waitingBytes: number
  completedCount: number
  // who talks, and where answers go
  readonly conversations: Set<ConversationKey>
  target: ReplyTarget | null
  // outbound
  readonly line: FinalJob[]
  readonly jobs: Map<MessageId, FinalJob>
  /** Refused as temporary, waiting to be redelivered: until when, in order. */
  readonly deferred: Map<MessageId, number>
  endedOutboundCount: number
  /** In-doubt finals of this run whose call may still be answered late. */
  readonly doubts: Map<MessageId, DeadLetterRecord>
}

export function newChannel(id: ChannelId): Channel {
  return {
    id, link: null, legacyOpen: false, congested: false, backlogUntil: -1,
    arrivals: [], nextArrival: 0, waiting: [], byId: new Map(), bySeq: new Map(), byConversation: new Map(), expiries: [], inFlight: new Set(),
    waitingBytes: 0, completedCount: 0, conversations: new Set(), target: null,
    line: [], jobs: new Map(), deferred: new Map(), endedOutboundCount: 0, doubts: new Map(),
  }
}

/** Number of messages that wait in a channel (in flight included). */
export const waitingCount = (channel: Channel): number => channel.bySeq.size
