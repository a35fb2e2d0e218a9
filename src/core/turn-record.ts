/** What is durable of turns, bindings and writers of a channel: one record, written with whatever changes it (DESIGN §4 rule 1). */
import type { ConversationKey } from '../protocol/ids.js'
import { RECORD_VERSION, channelKey, type Change, type ReplyTarget, type StoredTurn, type TurnRecord } from './record.js'
import type { Channel, Turn, TurnMessage } from './state.js'

/** Unfinished streams of a channel: so many of their bindings survive a restart, the latest. */
const MAX_STORED_BINDINGS = 100

export const turnChange = (channel: Channel): Change => ({ op: 'put', kind: 'turn', key: channelKey(channel.id), value: turnRecord(channel) })

function turnRecord(channel: Channel): TurnRecord {
  const { turn, lastPrivate } = channel
  const bound = [...channel.bindings].filter(([messageId]) => !channel.jobs.has(messageId))
  return {
    v: RECORD_VERSION, channelId: channel.id, epoch: channel.epoch, conversations: [...channel.conversations], target: channel.target, number: channel.turnNumber,
    turn: turn === null ? null : storedTurn(turn), last: channel.lastTurn,
    lastPrivate: lastPrivate === null ? null : { conversation: lastPrivate.conversation, several: lastPrivate.several },
    bound: bound.slice(-MAX_STORED_BINDINGS).map(([messageId, { target, turn: number }]) => ({ messageId, target, turn: number })),
  }
}

function storedTurn(turn: Turn): StoredTurn {
  return {
    conversation: turn.conversation, openedAt: turn.openedAt, accepted: turn.accepted, finals: turn.finals, activity: turn.activity,
    messages: turn.messages.map(({ seq, messageId, target, state }) => ({ seq, messageId, target, state })), lastAt: Math.max(turn.acceptedAt, turn.workAt),
    ...(turn.unknown !== null && { unknown: { count: turn.unknown.count, at: turn.unknown.at } }),
  }
}

/** Takes a stored record over: clocks start anew when xAgent opens the channel (rule 6). */
export function restoreTurn(channel: Channel, record: TurnRecord | (BeforeTurns & Pick<TurnRecord, 'target'>), now: number): void {
  channel.target = record.target
  if (isBeforeTurns(record)) {
    for (const conversation of record.conversations) channel.conversations.set(conversation, 0)
    channel.target = restoredTarget(record.target)
    return
  }
  channel.epoch = record.epoch ?? 0
  for (const [conversation, endedAt] of record.conversations) channel.conversations.set(conversation, endedAt)
  channel.turnNumber = record.number
  channel.lastTurn = record.last
  // Nobody listened in between.
  channel.lastPrivate = record.lastPrivate === null ? null : { ...record.lastPrivate, known: false }
  for (const { messageId, target, turn } of record.bound) channel.bindings.set(messageId, { target, turn, at: now })
  const stored = record.turn
  if (stored === null) return
  const lastAt = Math.min(stored.lastAt, now)
  channel.turn = {
    ...newState(record.number, stored.conversation, stored.openedAt), accepted: stored.accepted, finals: stored.finals, activity: stored.activity,
    messages: stored.messages.map((message) => restoredPlace(message, lastAt)),
    tick: 2, acceptedTick: stored.accepted > 0 ? 1 : 0, acceptedAt: lastAt, workTick: stored.finals > 0 ? 2 : 0,
    unknown: stored.unknown === undefined ? null : { ...stored.unknown, tick: 1 },
  }
}

/** A frame leaves as soon as its place is durable: nobody knows that one did not. */
function restoredPlace(stored: StoredTurn['messages'][number], lastAt: number): TurnMessage {
  const state = stored.state === 'entered' ? 'sent' : stored.state
  return { ...stored, state, firstTick: 0, firstSentAt: 0, sentAt: lastAt, unanswered: state === 'sent' }
}

/** A turn of which nothing is known yet. */
export function newState(number: number, conversation: ConversationKey, openedAt: number): Turn {
  return {
    number, conversation, openedAt, messages: [], accepted: 0, finals: 0, activity: false, tick: 0, acceptedTick: 0, acceptedAt: 0, workTick: 0,
    workAt: 0, finalAt: 0, idle: null, busySince: null, unknown: null, refused: new Map(),
  }
}

/** Written before there were turns: who wrote, and the latest target. */
interface BeforeTurns {
  readonly conversations: readonly ConversationKey[]
}

function isBeforeTurns(record: TurnRecord | (BeforeTurns & Pick<TurnRecord, 'target'>)): record is BeforeTurns & Pick<TurnRecord, 'target'> {
  return !('bound' in record)
}

/** A target as it is today: one that was written by an earlier version says nothing of files, typing and the last chat. */
export function restoredTarget(target: ReplyTarget | null): ReplyTarget | null {
  // One of today is taken as it is: a million of them may be loaded at a start.
  if (target === null || Object.hasOwn(target, 'typing')) return target
  return { ...{ file: null, lastChatOnly: false, typing: null }, ...target }
}
