/** What holds on a route right now: the live values of /metrics, and the ledger's account of what is pending. */
import { imbalance, type Ledger } from '../core/ledger.js'
import type { Direction } from '../core/outcome.js'
import { waitingCount, type Channel } from '../core/state.js'
import { conversationsHeld } from '../core/turn-order.js'
import type { RouteSnapshot } from '../ops/route-metrics.js'
import type { ChannelTable } from './channel-table.js'
import type { NorthLinks } from './north-link.js'

export type Pending = Readonly<Record<Direction, number>>

export interface SnapshotParts {
  readonly table: ChannelTable
  readonly links: NorthLinks
  readonly ledger: Ledger
  readonly now: number
  readonly owned: boolean
  readonly legacyUp: boolean
  readonly paused: boolean
  readonly deadLetters: number
  readonly deltaStreams: number
  /** Pushes that wait for an open to be answered. */
  readonly held: number
  /** What the store holds beyond what the state says. */
  readonly storeDifference: Pending
}

export function routeSnapshot(parts: SnapshotParts): RouteSnapshot {
  const channels = [...parts.table].map(({ channel }) => channel)
  const pending = pendingOf(parts.table, parts.held)
  const oldest = Math.min(...channels.map(oldestTakenAt))
  const books = (direction: Direction): number => imbalance(parts.ledger[direction], pending[direction]) || parts.storeDifference[direction]
  return {
    owned: parts.owned,
    pending,
    pendingBytes: channels.reduce((sum, { waitingBytes }) => sum + waitingBytes, 0),
    oldestPendingAgeMs: oldest === Infinity ? 0 : parts.now - oldest,
    blockedChannels: channels.filter(({ waiting }) => waiting.some(({ ended, notBefore }) => !ended && notBefore > parts.now)).length,
    conversationsWaiting: channels.reduce((sum, channel) => sum + conversationsHeld(channel), 0),
    deadLetters: parts.deadLetters,
    deltaStreams: parts.deltaStreams,
    legacyUp: parts.legacyUp,
    xagentVersions: [...parts.links].flatMap(({ hello }) => (hello === null ? [] : [hello.version])),
    channelsOpen: { legacy: channels.filter(({ legacyOpen }) => legacyOpen).length, xagent: channels.filter(({ link }) => link !== null).length },
    linksPaused: parts.paused ? 1 : 0,
    ledgerImbalance: { inbound: books('inbound'), outbound: books('outbound') },
  }
}

/** Everything that was received and has not ended. */
export function pendingOf(table: ChannelTable, held: number): Pending {
  const stored = storedPending(table)
  return { inbound: [...table].reduce((sum, { channel }) => sum + channel.arrivals.length, stored.inbound + held), outbound: stored.outbound }
}

/** The part of it that the store must hold as well. */
export function storedPending(table: ChannelTable): Pending {
  let inbound = 0
  let outbound = 0
  for (const { channel } of table) {
    inbound += waitingCount(channel)
    outbound += channel.deferred.size + channel.line.filter((job) => (job.record !== null || job.ending !== null) && !channel.deferred.has(job.final.messageId)).length
  }
  return { inbound, outbound }
}

/** Messages wait in order of their sequence. */
function oldestTakenAt(channel: Channel): number {
  const [first] = channel.bySeq.values()
  return first?.takenAt ?? Infinity
}
