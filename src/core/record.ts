/**
 * What is stored, kind by kind (DESIGN §7). Records carry a version; keys are made here and nowhere else. Everything is
 * plain JSON data in camelCase.
 */
import { createHash } from 'node:crypto'
import type { Certainty, DeadLetterReason, Direction, InboundOutcome, OutboundOutcome } from './outcome.js'
import type { ChannelId, ConversationKey, LegacyChannelId, LegacyConnectorId, ConnectorId, MessageId, ToolId } from '../protocol/ids.js'
import type { JsonObject } from '../protocol/packet.js'
import type { EndedTurn, LastPrivate, TurnMessage } from './state.js'

export const RECORD_VERSION = 1

/**
 * `route`: one record of ids, Card, Skill, last-alive time. `channel`: the id map. `turn`: who talks in a
 * channel, who has the word, where answers go. `inbound`:
 * waiting messages without their words. `body`: words and files of waiting messages and dead letters. `completed`: ids of
 * ended inbound messages; `completed_order` sorts them by channel and end of retention. `outbound`: finals, running and
 * ended; `outbound_order` sorts the ended ones the same way. `dead_letter`: messages that ended undelivered.
 * `call`: an agent's own tool calls, so that each runs once.
 */
export const RECORD_KINDS = ['route', 'channel', 'turn', 'inbound', 'body', 'completed', 'completed_order', 'outbound', 'outbound_order', 'dead_letter', 'call'] as const
export type RecordKind = (typeof RECORD_KINDS)[number]

/** One change of a batch. */
export type Change =
  | { readonly op: 'put'; readonly kind: RecordKind; readonly key: string; readonly value: unknown }
  | { readonly op: 'delete'; readonly kind: RecordKind; readonly key: string }

/**
 * A file of a message. `preparing`: it is still to be had from the connector, at `sourceUrl`, and what it is stands on the
 * connector's word; `ready`: `ref` is the gateway's own, and type, name and size are what the bytes say; `lost`: `lostBy` says why.
 */
export interface FileItem {
  readonly state: 'preparing' | 'ready' | 'lost'
  readonly type: 'image' | 'video' | 'audio' | 'file'
  readonly filename: string | null
  readonly mimeType: string | null
  readonly byteSize: number | null
  /** Relative to the connector's Base URL, or absolute. Never leaves for xAgent. */
  readonly sourceUrl: string
  readonly ref: string | null
  readonly expiresAt: number | null
  readonly lostBy: string | null
}

/** Words and files of a message: the part that the core never holds. */
export interface MessageBody {
  readonly text: string
  readonly files: readonly FileItem[]
}

/**
 * Where an answer goes: what the preset's reply rule took from the push that is answered. Never leaves for xAgent, never
 * serves another channel.
 */
export interface ReplyAddress {
  readonly conversation: ConversationKey | null
  readonly tool: ToolId
  /** Arguments besides the text; all taken from the push. */
  readonly arguments: Readonly<Record<string, string>>
  /** Name of the argument that carries the text. */
  readonly textArgument: string
  /** What a truthful result must say, see ReplyRule. */
  readonly proof: ReplyProof
  readonly inDoubt: 'dead_letter' | 'retry'
  /** Gateway clock, ms. */
  readonly takenAt: number
  readonly expiresAt: number
  /** Whether this target serves one message only (a reply_ref, a context token), not the whole channel. */
  readonly perMessage: boolean
  /** The connector sends it to the private chat that wrote last: it holds only while that is this conversation. */
  readonly lastChatOnly: boolean
  /** How a file is sent there; null = not at all. */
  readonly file: FileTarget | null
  /** How this person is shown that an answer is being made. */
  readonly typing: TypingTarget | null
}

/** An address, and the account that it belongs to: once another one has signed in it reaches nobody. */
export interface ReplyTarget extends ReplyAddress {
  /** The channel's epoch when its push came; absent = 0, written before there were any. */
  readonly epoch?: number
}

/** The call that sends a file: `refArgument` names the argument that carries the connector's reference of it. */
export interface FileTarget {
  readonly tool: ToolId
  readonly arguments: Readonly<Record<string, string>>
  readonly refArgument: string
  /** Fields of the upload before the call: whom the file is for, where a connector wants to know that. */
  readonly uploadFields: Readonly<Record<string, string>>
}

/** A call of the connector's typing tool; `flag` names the argument that says whether. */
export interface TypingTarget {
  readonly tool: ToolId
  readonly arguments: Readonly<Record<string, string>>
  readonly flag: string
}

export interface ReplyProof {
  readonly sentWhen: Readonly<Record<string, readonly (string | number)[]>>
  readonly field: string | null
  /** Result field naming the recipient, and what it must say; null where neither tool nor push tells. */
  readonly recipient: { readonly field: string; readonly value: string } | null
}

/** One entry of a message's bounded life: ms since its takeover, what happened, and details without words. */
export interface JournalEntry {
  readonly at: number
  readonly what: 'taken' | 'transmitted' | 'acked' | 'no_ack' | 'link_lost' | 'refused' | 'started' | 'done' | 'late_answer' | 'reopened' | 'ended' | 'entered' | 'replayed' | 'file_lost' | 'uploaded'
  readonly note?: string
}

/** A waiting inbound message (key: `inboundKey`). */
export interface InboundRecord {
  readonly v: typeof RECORD_VERSION
  readonly seq: number
  /** Position in the channel; equals `seq` unless the connector's order is mended (reorder window). */
  readonly order: number
  readonly channelId: ChannelId
  readonly messageId: MessageId
  /** The connector's own id of it, for `why`; null when it is the same or was missing. */
  readonly originalId: string | null
  readonly conversation: ConversationKey | null
  readonly target: ReplyTarget | null
  readonly contentHash: string
  readonly bytes: number
  readonly createdAt: number
  readonly takenAt: number
  readonly expiresAt: number
  readonly files: number
  readonly preparing: number
  readonly hasWords: boolean
  readonly attempts: number
  /** Explicit rejections alone: what `max_attempts` counts. */
  readonly rejections: number
  readonly certainty: Certainty
  readonly lastCode: string | null
  readonly preset: string
  readonly journal: readonly JournalEntry[]
}

/** An ended inbound message, kept to absorb re-pushes (key: `completedKey`). */
export interface CompletedRecord {
  readonly v: typeof RECORD_VERSION
  readonly channelId: ChannelId
  readonly messageId: MessageId
  readonly originalId: string | null
  readonly contentHash: string
  readonly outcome: InboundOutcome
  readonly code: string | null
  readonly takenAt: number
  readonly endedAt: number
  /** End of the time in which a re-push is recognised. */
  readonly until: number
  readonly preset: string
  readonly journal: readonly JournalEntry[]
}

/** One call that a final needs. `state` is durable: `started` before the call leaves, `done` after its answer. */
export interface OutboundStep {
  readonly kind: 'text' | 'file'
  readonly tool: ToolId
  readonly arguments: JsonObject
  readonly state: 'waiting' | 'started' | 'done'
  /** For a file: the gateway's reference, the argument that gets the connector's, and what its upload says besides. */
  readonly file?: {
    readonly ref: string
    readonly argument: string
    readonly uploadFields: Readonly<Record<string, string>>
    /** Its place among the final's files. */
    readonly index: number
  }
}

/** The ack that ended a final, given again to every later transmission of it. */
export interface TerminalAck {
  readonly status: 'accepted' | 'rejected'
  readonly code: string | null
}

/** A final from its takeover to the end of its idempotency (key: `outboundKey`). */
export interface OutboundRecord {
  readonly v: typeof RECORD_VERSION
  readonly channelId: ChannelId
  readonly messageId: MessageId
  /** Null when its files were gone before they could be told apart. */
  readonly contentHash: string | null
  readonly takenAt: number
  /** When it is given up if xAgent never redelivers; for an ended one: until when its id is remembered. */
  readonly until: number
  /** The binding keeps its own copy of the target (DESIGN §4 rule 3). Steps are dropped when it has ended. */
  readonly target: ReplyTarget | null
  /** Number of the turn that it answers; null = outside of one. */
  readonly turn: number | null
  readonly steps: readonly OutboundStep[]
  /** `running`: steps go on by themselves; `deferred`: refused as temporary, waits to be redelivered; `ended`. */
  readonly state: 'running' | 'deferred' | 'ended'
  readonly outcome: OutboundOutcome | null
  readonly ack: TerminalAck | null
  readonly transmissions: number
  readonly preset: string
  readonly journal: readonly JournalEntry[]
}

/** A tool call that an agent made itself (key: `callKey`): known before it leaves, and with its answer afterwards. */
export interface CallRecord {
  readonly v: typeof RECORD_VERSION
  readonly channelId: ChannelId
  /** What was asked: the same id with anything else is no repetition. */
  readonly contentHash: string
  /** Null while nobody knows what it did. */
  readonly answer: { readonly ok: true; readonly value: JsonObject } | { readonly ok: false; readonly error: { readonly code: string; readonly message?: string } } | null
  /** Until when a repeated `tool_call_id` gets the same answer. */
  readonly until: number
}

/** Who talks in a channel and where answers go (key: `channelKey`); the core's, as the id map is the route's. */
export interface TurnRecord {
  readonly v: typeof RECORD_VERSION
  readonly channelId: ChannelId
  /** How often another account, or nobody, took the channel over; absent = 0. */
  readonly epoch?: number
  /** Conversations seen, oldest first, at most MAX_CONVERSATIONS, with the end of the last turn of each (0 = none). */
  readonly conversations: readonly (readonly [ConversationKey, number])[]
  /** Reply target of the latest message. */
  readonly target: ReplyTarget | null
  /** Number of the latest turn. */
  readonly number: number
  readonly turn: StoredTurn | null
  readonly last: EndedTurn | null
  readonly lastPrivate: Pick<LastPrivate, 'conversation' | 'several'> | null
  /** Bindings of outbound ids that have no record of their own yet: streams, finals refused at sight. */
  readonly bound: readonly { readonly messageId: MessageId; readonly target: ReplyTarget | null; readonly turn: number | null }[]
}

/** A turn as far as it is durable: its clocks start anew after a restart. */
export interface StoredTurn {
  readonly conversation: ConversationKey
  readonly openedAt: number
  readonly messages: readonly Pick<TurnMessage, 'seq' | 'messageId' | 'target' | 'state'>[]
  readonly accepted: number
  readonly finals: number
  readonly activity: boolean
  /** Last acceptance or work when it was written; 0 = none. */
  readonly lastAt: number
  /** Messages that xAgent may have taken, though they ended without an ack: how many, and the last transmission. */
  readonly unknown?: { readonly count: number; readonly at: number }
}

/** How many conversations of one channel are told apart (DESIGN §4 Turns rule 1). */
export const MAX_CONVERSATIONS = 200

/** The id map of a channel, and its last Descriptor (key: `channelKey`). */
export interface ChannelRecord {
  readonly v: typeof RECORD_VERSION
  readonly channelId: ChannelId
  /** Further northbound ids of the same channel: adopted from an xAgent that used the connector directly. */
  readonly aliases: readonly ChannelId[]
  readonly legacyId: LegacyChannelId
  /** Last Descriptor that the connector sent, as it was; projected anew for every use. */
  readonly descriptor: JsonObject | null
  /** Whether it was ever signed in: others are removed an hour after their last xAgent link. */
  readonly everConnected: boolean
  readonly lastLinkGoneAt: number | null
}

/** One route's own facts (key: ROUTE_KEY). */
export interface RouteRecord {
  readonly v: typeof RECORD_VERSION
  readonly connectorId: ConnectorId | null
  readonly legacyConnectorId: LegacyConnectorId | null
  readonly lastAliveAt: number | null
  readonly gaps: readonly Gap[]
}

/** A time in which the connector's channels could not be read. */
export interface Gap {
  readonly from: number
  readonly to: number
  readonly cause: 'link_lost' | 'restart'
}

/** A message that ended undelivered (key: `deadLetterKey`); its words are in `body` under `bodyKey`. */
export interface DeadLetterRecord {
  readonly v: typeof RECORD_VERSION
  readonly id: string
  readonly direction: Direction
  readonly reason: DeadLetterReason
  readonly code: string | null
  readonly message: string | null
  readonly certainty: Certainty
  readonly channelId: ChannelId | null
  readonly messageId: MessageId
  readonly originalId: string | null
  readonly conversation: ConversationKey | null
  readonly takenAt: number
  readonly endedAt: number
  readonly expiresAt: number
  readonly attempts: number
  /** Size of what is kept: the body's text and the record's own fields, for `retention.dead_letter_bytes`. */
  readonly bytes: number
  readonly bodyKey: string | null
  /** Steps of a final: which were sent. */
  readonly steps: readonly OutboundStep[]
  /** Where an answer was bound to, for a replay; null for inbound ones, and where nothing was bound. */
  readonly target: ReplyTarget | null
  /** Set when a late answer settles an in-doubt message: it must not be replayed. */
  readonly settled: 'sent' | 'not_sent' | null
  readonly preset: string
  readonly journal: readonly JournalEntry[]
}

export const ROUTE_KEY = 'route'

export const channelKey = (channelId: ChannelId): string => keyPart(channelId)
export const inboundKey = (seq: number): string => sortable(seq)
export const inboundBodyKey = (seq: number): string => `in/${sortable(seq)}`
export const completedKey = (channelId: ChannelId, messageId: MessageId): string => `${keyPart(channelId)}/${keyPart(messageId)}`
export const outboundKey = completedKey
export const callKey = (channelId: ChannelId, toolCallId: string): string => `${keyPart(channelId)}/${keyPart(toolCallId)}`
/** Sorts the ended messages of a channel by the end of their retention. */
export const orderKey = (channelId: ChannelId, until: number, messageId: MessageId): string =>
  `${orderPrefix(channelId)}${sortable(until)}/${keyPart(messageId)}`
export const orderPrefix = (channelId: ChannelId): string => `${keyPart(channelId)}/`
/** Dead letters sort by the time they ended. */
export const deadLetterKey = (endedAt: number, serial: string): string => `${sortable(endedAt)}-${serial}`
export const deadLetterBodyKey = (id: string): string => `dead/${id}`

/** A non-negative integer as a string that sorts by its value. */
function sortable(n: number): string {
  return String(Math.trunc(n)).padStart(16, '0')
}

/**
 * An id as part of a key. Ids from the wire may be long, may hold the separator or lone surrogates that no store can keep
 * apart: such ids are replaced by their hash.
 */
function keyPart(id: string): string {
  const plain = id.length <= 200 && /^[\w.:@+=~-]+$/.test(id)
  return plain ? id : `#${createHash('sha256').update(id, 'utf16le').digest('base64url')}`
}
