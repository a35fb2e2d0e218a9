/** The state of one channel, and what all channels of a route share. Owned by core/; shells only read counts. */
import type { CardTools } from '../translate/reply-target.js'
import type { Preset } from '../translate/preset.js'
import type { ChannelId, ConversationKey, LinkId, MessageId } from '../protocol/ids.js'
import type { TranslatedPush } from '../translate/message-push.js'
import type { ArrivedFinal, Transmission } from './event.js'
import type { Ended, RedeliveryCause } from './effect.js'
import type { CompletedRecord, DeadLetterRecord, JournalEntry, OutboundRecord, ReplyTarget, TypingTarget } from './record.js'
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
  readonly turns: TurnTimes
  readonly deltas: DeltaLimits
  /** How long "is typing" stays without a new snapshot. */
  readonly activityTimeoutMs: number
}

/** `turns` of the configuration. */
export interface TurnTimes {
  readonly mode: 'on' | 'off'
  readonly quietMs: number
  readonly timeoutMs: number
  readonly maxMs: number
}

/** `deltas` of the configuration, for the whole route. */
export interface DeltaLimits {
  readonly ttlMs: number
  readonly maxStreams: number
  readonly maxBytes: number
}

/** Shared by the channels of a route; `budget` by all routes of the process. */
export interface Shared {
  readonly limits: ChannelLimits
  dialect: { readonly preset: Preset; readonly tools: CardTools }
  readonly budget: Budget
  readonly gate: FlushGate
  readonly deltas: DeltaCache
  /** Makes a public link to a file of the gateway; null = `listen.public_url` is not set. */
  readonly fileLink: ((ref: string) => string) | null
  /** Names this run in packet ids, so that an ack of an earlier run is not mistaken for one of this. */
  readonly run: string
  /** The route ends: nothing new is sent, what runs comes to its end. */
  draining: boolean
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

/** Streams of all channels of the route, oldest first. */
export interface DeltaCache {
  /** Unfinished ones. */
  readonly streams: Map<string, DeltaStream>
  /** Those that are over (finished, discarded, too many): until when what follows of them is only counted. */
  readonly over: Map<string, number>
  /** Size of all unfinished ones. */
  bytes: number
}

export interface DeltaStream {
  /** By sequence from 1. */
  readonly texts: string[]
  bytes: number
  readonly until: number
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
  /** Files that are not there yet: the message waits for them. */
  preparing: number
  /** Whether it has words: without, it needs a file that could be had. */
  readonly hasWords: boolean
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
  /** The channel's epoch when it came. */
  readonly epoch: number
  /** undefined = not answered yet. */
  completed: CompletedRecord | null | undefined
}

/** Messages of one conversation that wait, in order of delivery. Ended ones stay until they reach the front. */
export interface ConversationQueue {
  readonly list: Waiting[]
  /** Those that have not ended. */
  count: number
}

/** A message in a turn. `refused`: its last ack is a rejection. */
export interface TurnMessage {
  readonly seq: number
  readonly messageId: MessageId
  target: ReplyTarget | null
  state: 'entered' | 'sent' | 'refused' | 'accepted'
  /** Place among the turn's events of its first transmission since it was last refused, and when that was; 0 = not in this run. */
  firstTick: number
  firstSentAt: number
  sentAt: number
  /** No ack has answered its latest transmission: xAgent may have taken it. */
  unanswered: boolean
}

/** The conversation that has the word in a channel (DESIGN §4 Turns). Moments are gateway clock, ms; ticks order events. */
export interface Turn {
  readonly number: number
  readonly conversation: ConversationKey
  readonly openedAt: number
  /** Those that answers may be bound to, in order of their first transmission. */
  messages: TurnMessage[]
  accepted: number
  /** Finals seen that belong to it. */
  finals: number
  /** Whether xAgent has shown activity in it. */
  activity: boolean
  tick: number
  acceptedTick: number
  acceptedAt: number
  workTick: number
  workAt: number
  finalAt: number
  /** A standing `idle`: its place, the last work before it, its moment. */
  idle: { readonly tick: number; readonly workTick: number; readonly at: number } | null
  /** Since when a thinking or tool snapshot stands. */
  busySince: number | null
  /** Messages that ended without an ack: number, place of the latest, and its last transmission. */
  unknown: { readonly count: number; readonly tick: number; readonly at: number } | null
  /** Finals that were refused for now: until when each keeps the turn open. */
  readonly refused: Map<MessageId, number>
}

export type TurnEnd = 'certain' | 'likely' | 'timeout' | 'unaccepted'

export interface EndedTurn {
  readonly conversation: ConversationKey
  readonly how: TurnEnd
  /** Where a late answer of it goes; null = nowhere. */
  readonly target: ReplyTarget | null
  readonly endedAt: number
}

/** Where an outbound message goes, decided when its id was first seen (DESIGN §4 Turns rules 3 and 7). */
export interface Binding {
  readonly target: ReplyTarget | null
  /** The turn it belongs to; null = outside of one. */
  readonly turn: number | null
  readonly at: number
}

/** Which private chat wrote last, where a connector can answer only that one (DESIGN §5). */
export interface LastPrivate {
  readonly conversation: ConversationKey
  /** Whether the channel ever had two. */
  readonly several: boolean
  /** False after a time in which the connector could not be read. */
  known: boolean
}

/** A final in the channel's line. */
export interface FinalJob {
  readonly final: ArrivedFinal
  readonly binding: Binding
  /** The dead letter that is sent again, or null for a final from xAgent. */
  readonly replayOf: DeadLetterRecord | null
  readonly repeats: Transmission[]
  readonly waitUntil: number
  phase: 'looking' | 'queued' | 'uploading' | 'running' | 'storing'
  /** The connector's reference of the running step's file. */
  uploadedRef: string | null
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
  readonly byConversation: Map<ConversationKey | null, ConversationQueue>
  /** In order of expiry. Ended ones stay until they reach the front. */
  readonly expiries: Waiting[]
  readonly inFlight: Set<Waiting>
  waitingBytes: number
  completedCount: number
  /** Held for the reorder window, in order of arrival, and the order up to which messages are released. */
  readonly held: Waiting[]
  releasedOrder: number
  // who talks, and where answers go
  /** How often another account, or nobody, took the channel over: targets of an earlier epoch reach nobody. */
  epoch: number
  /** Conversations seen, at most MAX_CONVERSATIONS, and when the last turn of each ended; 0 = had none. */
  readonly conversations: Map<ConversationKey, number>
  /** Reply target of the latest message. */
  target: ReplyTarget | null
  /** When xAgent opened the channel last: clocks of a turn start anew then. */
  openedAt: number
  turn: Turn | null
  lastTurn: EndedTurn | null
  turnNumber: number
  /** Messages whose place in the turn is being stored; their frames leave afterwards. */
  readonly entering: Set<Waiting>
  lastPrivate: LastPrivate | null
  /** By outbound id, oldest first. */
  readonly bindings: Map<MessageId, Binding>
  typing: { readonly target: TypingTarget; readonly shownAt: number; readonly until: number } | null
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
    waitingBytes: 0, completedCount: 0, held: [], releasedOrder: -Infinity,
    epoch: 0, conversations: new Map(), target: null, openedAt: 0, turn: null, lastTurn: null, turnNumber: 0, entering: new Set(), lastPrivate: null, bindings: new Map(), typing: null,
    line: [], jobs: new Map(), deferred: new Map(), endedOutboundCount: 0, doubts: new Map(),
  }
}

/** Number of messages that wait in a channel (in flight included). */
export const waitingCount = (channel: Channel): number => channel.bySeq.size
