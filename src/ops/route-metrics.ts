/** The metrics of one route, with methods so narrow that no label value can be made up. */
import type { Counter, Gauge } from 'prom-client'
import { INBOUND_OUTCOMES, OUTBOUND_OUTCOMES, type Direction } from '../core/outcome.js'
import type { Ended } from '../core/effect.js'
import type { RouteName } from '../protocol/ids.js'
import type { OutcomeClass } from '../translate/preset.js'
import {
  DEVIATIONS, DIRECTIONS, OVERFLOW_KINDS, REDELIVERY_CAUSES, SIDES, TURN_ENDS, versionLabel, within,
  type FilterReason, type LimitKind, type LinkFault, type OrphanReason, type OverflowKind, type RedeliveryCause, type Side, type TurnEnd,
} from './metric-labels.js'
import type { Series } from './metric-series.js'

/** What holds now; asked for at every scrape. */
export interface RouteSnapshot {
  readonly owned: boolean
  readonly pending: Readonly<Record<Direction, number>>
  readonly pendingBytes: number
  /** 0 when nothing waits. */
  readonly oldestPendingAgeMs: number
  readonly blockedChannels: number
  /** Conversations that wait for somebody else's turn to end. */
  readonly conversationsWaiting: number
  readonly deadLetters: number
  readonly deltaStreams: number
  readonly legacyUp: boolean
  /** `protocol_version` of each xAgent link that said hello. */
  readonly xagentVersions: readonly string[]
  readonly channelsOpen: Readonly<Record<Side, number>>
  readonly linksPaused: number
  readonly ledgerImbalance: Readonly<Record<Direction, number>>
}

export type SnapshotSource = () => RouteSnapshot | Promise<RouteSnapshot>

const KNOWN_DEVIATIONS: ReadonlySet<string> = new Set(DEVIATIONS)

export class RouteMetrics {
  readonly name: RouteName
  readonly #series: Series
  readonly #packetTypes: ReadonlySet<string>
  readonly #onRemove: () => void
  #tools: ReadonlySet<string> = new Set()
  #source: SnapshotSource | null = null

  /** Made by `Metrics.route`. Series whose label values are known in advance start at 0, so that the first event is a rise. */
  constructor(name: RouteName, series: Series, packetTypes: ReadonlySet<string>, onRemove: () => void) {
    this.name = name
    this.#series = series
    this.#packetTypes = packetTypes
    this.#onRemove = onRemove
    const connector = name
    for (const outcome of Object.keys(INBOUND_OUTCOMES)) series.messages.inc({ connector, direction: 'inbound', outcome }, 0)
    for (const outcome of Object.keys(OUTBOUND_OUTCOMES)) series.messages.inc({ connector, direction: 'outbound', outcome }, 0)
    for (const cause of REDELIVERY_CAUSES) series.redeliveries.inc({ connector, cause }, 0)
    for (const kind of OVERFLOW_KINDS) series.overflow.inc({ connector, kind }, 0)
    for (const end of TURN_ENDS) series.turns.inc({ connector, end }, 0)
    for (const side of SIDES) series.reconnects.inc({ connector, side }, 0)
    series.legacyGaps.inc({ connector }, 0)
    series.legacyGapSeconds.inc({ connector }, 0)
  }

  /** A message ended, or was put off; counts its dead letter, too. */
  ended(ended: Ended): void {
    const { direction, outcome, reason, deadLetterId } = ended
    this.#series.messages.inc({ connector: this.name, direction, outcome })
    if (deadLetterId !== null && reason !== null) this.#series.deadLettersTotal.inc({ connector: this.name, direction, reason })
  }

  redelivered(cause: RedeliveryCause): void {
    this.#series.redeliveries.inc({ connector: this.name, cause })
  }

  ackLatency(ms: number): void {
    this.#series.ackLatency.observe({ connector: this.name }, ms / 1000)
  }

  translated(ms: number): void {
    this.#series.translate.observe(ms / 1000)
  }

  /** A packet came in from that side; a type that the catalog does not list counts as `other`. */
  packet(side: Side, type: string): void {
    this.#series.packets.inc({ connector: this.name, side, type: within(this.#packetTypes, type) })
  }

  filtered(direction: Direction, reason: FilterReason): void {
    this.#series.packetsFiltered.inc({ connector: this.name, direction, reason })
  }

  /** Reasons that are in no table count as `other`. */
  deviations(reasons: Iterable<string>): void {
    for (const reason of reasons) this.#series.deviations.inc({ connector: this.name, reason: within(KNOWN_DEVIATIONS, reason) })
  }

  ackOrphaned(reason: OrphanReason): void {
    this.#series.acksOrphaned.inc({ connector: this.name, reason })
  }

  overflowed(kind: OverflowKind, records = 1): void {
    this.#series.overflow.inc({ connector: this.name, kind }, records)
  }

  /** The tools of the Card: the only ones that `toolInvoked` names. */
  setTools(tools: Iterable<string>): void {
    this.#tools = new Set(tools)
  }

  /** A tool call was answered, or given up; `ms` is how long that took. */
  toolInvoked(tool: string, outcome: OutcomeClass, ms: number): void {
    this.#series.toolInvocations.inc({ connector: this.name, tool: within(this.#tools, tool), outcome })
    this.#series.toolSeconds.observe({ connector: this.name }, ms / 1000)
  }

  turnEnded(end: TurnEnd): void {
    this.#series.turns.inc({ connector: this.name, end })
  }

  reconnected(side: Side): void {
    this.#series.reconnects.inc({ connector: this.name, side })
  }

  gap(ms: number): void {
    this.#series.legacyGaps.inc({ connector: this.name })
    this.#series.legacyGapSeconds.inc({ connector: this.name }, ms / 1000)
  }

  linkRefused(reason: LinkFault): void {
    this.#series.linksRefused.inc({ connector: this.name, reason })
  }

  limit(kind: LimitKind, value: number): void {
    this.#series.limit.set({ connector: this.name, kind }, value)
  }

  /** Where the live values come from. One source per route; a later call replaces it. */
  onCollect(source: SnapshotSource): void {
    this.#source = source
  }

  /**
   * Takes the live values into the gauges and answers whether the route is owned. A source that fails leaves them out of
   * this scrape: a missing value is honest, an old one is not.
   */
  async collect(): Promise<boolean> {
    try {
      const snapshot = (await this.#source?.()) ?? null
      await this.#clearGauges()
      if (snapshot !== null) this.#show(snapshot)
      return snapshot?.owned ?? false
    } catch {
      await this.#clearGauges()
      return false
    }
  }

  /** The route is gone: all its series go, too. */
  async remove(): Promise<void> {
    this.#source = null
    this.#onRemove()
    for (const series of Object.values(this.#series) as readonly (Counter | Gauge)[]) await this.#removeFrom(series)
  }

  #show(now: RouteSnapshot): void {
    const series = this.#series
    const connector = this.name
    for (const direction of DIRECTIONS) {
      series.pendingMessages.set({ connector, direction }, now.pending[direction])
      series.ledgerImbalance.set({ connector, direction }, now.ledgerImbalance[direction])
    }
    series.pendingBytes.set({ connector }, now.pendingBytes)
    series.oldestPendingAge.set({ connector }, now.oldestPendingAgeMs / 1000)
    series.blockedChannels.set({ connector }, now.blockedChannels)
    series.conversationsWaiting.set({ connector }, now.conversationsWaiting)
    series.deadLetters.set({ connector }, now.deadLetters)
    series.deltaStreams.set({ connector }, now.deltaStreams)
    series.legacyUp.set({ connector }, now.legacyUp ? 1 : 0)
    series.xagentConnected.set({ connector }, now.xagentVersions.length)
    for (const version of now.xagentVersions) series.xagentProtocol.inc({ connector, version: versionLabel(version) })
    for (const side of SIDES) series.channelsOpen.set({ connector, side }, now.channelsOpen[side])
    series.linksPaused.set({ connector }, now.linksPaused)
  }

  async #clearGauges(): Promise<void> {
    const { pendingMessages, ledgerImbalance, pendingBytes, oldestPendingAge, blockedChannels, deadLetters } = this.#series
    const { conversationsWaiting, deltaStreams, legacyUp, xagentConnected, xagentProtocol, channelsOpen, linksPaused } = this.#series
    const live = [pendingMessages, ledgerImbalance, pendingBytes, oldestPendingAge, blockedChannels, conversationsWaiting, deadLetters, deltaStreams, legacyUp, xagentConnected, xagentProtocol, channelsOpen, linksPaused]
    for (const gauge of live) await this.#removeFrom(gauge as Gauge)
  }

  async #removeFrom(series: Counter | Gauge): Promise<void> {
    for (const { labels } of (await series.get()).values) {
      if (labels['connector'] !== this.name) continue
      const { le: _le, ...own } = labels
      series.remove(own)
    }
  }
}
