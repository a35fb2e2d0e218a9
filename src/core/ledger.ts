/**
 * The ledger (DESIGN §8): for each direction, carried over + received + replayed = ended + pending. Every figure is counted
 * where it happens; pending is counted from the state, and again from the store.
 */
import type { Direction } from './outcome.js'

export interface LedgerColumn {
  carriedOver: number
  received: number
  replayed: number
  ended: number
}

export type Ledger = Readonly<Record<Direction, LedgerColumn>>

export function newLedger(): Ledger {
  return { inbound: column(), outbound: column() }
}

/** What the books say beyond what is pending: 0 when they balance, positive when something vanished. */
export function imbalance(column: LedgerColumn, pending: number): number {
  return column.carriedOver + column.received + column.replayed - column.ended - pending
}

function column(): LedgerColumn {
  return { carriedOver: 0, received: 0, replayed: 0, ended: 0 }
}
