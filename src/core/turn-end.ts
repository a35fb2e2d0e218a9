/**
 * When a turn is over (DESIGN §4 Turns rules 5 and 6): one function, which answers with an end or with the next moment to look.
 * Nothing else names a moment of a turn.
 */
import type { Turn, TurnEnd, TurnTimes } from './state.js'

/** What the channel knows besides the turn itself. */
export interface TurnSurroundings {
  /** Whether xAgent has the channel open, and since when: clocks stand still before that. */
  readonly open: boolean
  readonly openedAt: number
  /** A message of the turn is on its way, or its place is being stored. */
  readonly onItsWay: boolean
  /** A message of the turn may still be accepted. */
  readonly pending: boolean
  /** A final of the turn is being worked on. */
  readonly running: boolean
  readonly ttlMs: number
}

export type TurnVerdict = { readonly end: TurnEnd } | { readonly at: number }

const NEVER: TurnVerdict = { at: Infinity }

export function turnEnd(turn: Turn, around: TurnSurroundings, times: TurnTimes, now: number): TurnVerdict {
  return turn.accepted === 0 ? beforeAcceptance(turn, around, times, now) : afterAcceptance(turn, around, times, now)
}

/** No clock runs while one of its messages may still be accepted. */
function beforeAcceptance(turn: Turn, around: TurnSurroundings, times: TurnTimes, now: number): TurnVerdict {
  if (around.pending || around.onItsWay || around.running) return NEVER
  if (turn.unknown === null) return { end: 'unaccepted' }
  const over = turn.unknown.at + around.ttlMs
  if (!around.open) return due(over, 'timeout', now)
  const at = Math.max(turn.unknown.at, around.openedAt, turn.workAt) + times.timeoutMs
  return due(Math.min(over, Math.max(at, heldUntil(turn))), 'timeout', now)
}

function afterAcceptance(turn: Turn, around: TurnSurroundings, times: TurnTimes, now: number): TurnVerdict {
  const over = Math.max(turn.acceptedAt, turn.workAt) + around.ttlMs
  if (over <= now) return { end: 'timeout' }
  if (!around.open || around.onItsWay || around.running) return { at: over }
  const held = heldUntil(turn)
  if (held > now) return { at: Math.min(over, held) }
  const taken = takenBy(turn)
  if (isCertain(turn, taken)) return { end: 'certain' }
  const likely = likelyAt(turn, taken, around.openedAt, times)
  const timeout = timeoutAt(turn, taken, around.openedAt, times)
  if (likely <= timeout) return due(Math.min(over, likely), 'likely', now)
  return due(Math.min(over, timeout), 'timeout', now)
}

interface Taken {
  readonly count: number
  readonly tick: number
  readonly at: number
}

/**
 * What xAgent has taken, or may have: a transmission without an ack counts like an acceptance of its moment, because the ack
 * may be what was lost. Otherwise its answer could come when somebody else has the word.
 */
function takenBy(turn: Turn): Taken {
  const open = turn.messages.filter(({ unanswered }) => unanswered)
  return {
    count: turn.accepted + open.length + (turn.unknown?.count ?? 0),
    tick: Math.max(turn.acceptedTick, turn.unknown?.tick ?? 0, ...open.map(({ firstTick }) => firstTick)),
    at: Math.max(turn.acceptedAt, turn.unknown?.at ?? 0, ...open.map(({ firstSentAt }) => firstSentAt)),
  }
}

/** Idle after work since the last acceptance, a final seen, exactly one message accepted. */
function isCertain(turn: Turn, taken: Taken): boolean {
  return taken.count === 1 && turn.finals > 0 && turn.idle !== null && turn.idle.workTick > taken.tick
}

/**
 * Quiet after an idle that follows work in the turn and the last acceptance; where xAgent shows no activity, quiet after a
 * final once there are as many finals as accepted messages.
 */
function likelyAt(turn: Turn, taken: Taken, openedAt: number, { quietMs }: TurnTimes): number {
  if (turn.activity) {
    const { idle } = turn
    if (idle === null || idle.workTick === 0 || idle.tick < taken.tick) return Infinity
    return Math.max(idle.at, turn.finalAt, openedAt) + quietMs
  }
  if (turn.finals === 0 || turn.finals < taken.count) return Infinity
  return Math.max(turn.finalAt, taken.at, turn.workAt, openedAt) + quietMs
}

/** A standing thinking or tool snapshot is work, for `turns.max`. */
function timeoutAt(turn: Turn, taken: Taken, openedAt: number, { timeoutMs, maxMs }: TurnTimes): number {
  const busy = turn.busySince === null ? 0 : turn.busySince + maxMs
  return Math.max(taken.at, turn.workAt, busy, openedAt) + timeoutMs
}

function heldUntil(turn: Turn): number {
  return Math.max(0, ...turn.refused.values())
}

const due = (at: number, end: TurnEnd, now: number): TurnVerdict => (at <= now ? { end } : { at })
