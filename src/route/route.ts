/** One fronted connector: joins the xAgent side, the core and the legacy side. It wires; what the parts mean stands in them. */
import { openStreams, sweepDeltas } from '../core/delta.js'
import type { Ended } from '../core/effect.js'
import { newLedger, type Ledger } from '../core/ledger.js'
import type { Budget, Channel, Shared } from '../core/state.js'
import { CARD_UNKNOWN } from '../legacy/link-end.js'
import type { ConnectorLinksOptions } from '../legacy/connector-links.js'
import type { LegacyHttp, MainLinkEvents } from '../legacy/port.js'
import type { Clock } from '../ops/clock.js'
import type { Logger } from '../ops/logger.js'
import { logOutcome } from '../ops/outcome-log.js'
import type { RouteMetrics, RouteSnapshot } from '../ops/route-metrics.js'
import type { Catalog } from '../protocol/catalog.js'
import type { RemoteFile, StoredFile } from '../files/stored-file.js'
import { err, wireError, type Result, type StoreError } from '../protocol/errors.js'
import type { ChannelId, LegacyConnectorId, ProfileId } from '../protocol/ids.js'
import { IM_V2 } from '../protocol/im-v2.js'
import type { Packet } from '../protocol/packet.js'
import type { Fence, Store } from '../store/port.js'
import { cardTools } from '../translate/reply-target.js'
import type { HttpBody, NorthRoute, XagentLink } from '../xagent/port.js'
import { CardDesk, type CardDeskOptions } from './card-desk.js'
import { CardSource } from './card-source.js'
import { ChannelTable, type Entry } from './channel-table.js'
import type { KeptCard, RouteFacts, RouteFiles, RouteSettings } from './context.js'
import { InferenceLog } from './inference-log.js'
import { NorthLinks } from './north-link.js'
import { assembleParts, type RouteParts } from './parts.js'
import { loadChannels, loadFacts } from './route-load.js'
import { routeSnapshot } from './route-snapshot.js'
import { newShared } from './shared-state.js'

const ALIVE_INTERVAL_MS = 5_000
const DRAIN_POLL_MS = 50
/** Dials that are refused quickly one after the other ask for the Card this rarely. */
const CARD_EVERY_REFUSALS = 10

export interface RouteOptions extends Omit<CardDeskOptions, 'onServed' | 'carriesFiles'> {
  readonly settings: RouteSettings
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: RouteMetrics
  readonly catalog: Catalog
  readonly budget: Budget
  readonly flushChannels: number
  readonly http: LegacyHttp
  /** Null = files are not carried. */
  readonly files: RouteFiles | null
  readonly links: Omit<ConnectorLinksOptions, 'hello' | 'clock' | 'supportedProfiles'>
  /** `prefix` + an unguessable id. */
  readonly newId: (prefix: string) => string
  /** Another process owns the route: this one has ended, but for `stop`. */
  readonly onFenceLost?: () => void
}

export class Route implements NorthRoute {
  readonly name
  readonly #links = new NorthLinks()
  readonly #table = new ChannelTable()
  readonly #ledger: Ledger = newLedger()
  readonly #shared: Shared
  readonly #desk: CardDesk
  readonly #cards: CardSource
  readonly #inference: InferenceLog
  readonly #cancels = new Set<() => void>()
  #running: RouteParts | null = null
  /** The profile of the latest Card; null = none yet. */
  #spoken: ProfileId | null = null
  #stopping = false
  #lost = false
  #problem: string | null = 'the route is starting'

  constructor(private readonly options: RouteOptions) {
    this.name = options.settings.name
    this.#shared = newShared(options)
    this.#inference = new InferenceLog(options.log)
    this.#desk = new CardDesk({
      ...options,
      carriesFiles: options.files !== null,
      onServed: (card, preset, legacy) => {
        // A connector that is relayed keeps what nobody has acked (v2 §9), and is answered in no way that could be inferred.
        const relayed = card.spoken === IM_V2
        this.#shared.dialect = { preset: relayed ? { ...preset, whileClosed: 'queued' } : preset, tools: cardTools(legacy) }
        if (!relayed) this.#inference.card(preset, this.#shared.dialect.tools)
        options.metrics.setTools(this.#shared.dialect.tools.keys())
        options.log.info({ cardId: card.cardId, version: card.version, preset: preset.name }, 'the Card is served')
        this.#running?.board.showAll()
        this.#speak(card.spoken)
      },
    })
    this.#cards = new CardSource({ ...options, onCard: ({ body, skill, deviations }) => this.#takeCard({ card: body, skill }, deviations) })
  }

  /** Loads, then listens on both sides. `fence` proves the ownership under which everything is written. */
  async start(fence: Fence): Promise<void> {
    const { store, metrics } = this.options
    const running = this.#parts(fence, await loadFacts(store, this.name))
    this.#running = running
    await running.keeper.loadCard()
    // First what is there, then what loading adds to it.
    await running.housekeeping.start()
    await loadChannels(store, running.context, (entry, effects) => running.runner.perform(entry, effects))
    // Lost to another process, or told to stop, while it was loading: nothing is dialled any more.
    if (this.#lost || this.#stopping) return
    const { legacyCard, legacySkill, lastAliveAt } = running.keeper.facts
    if (legacyCard !== null) this.#desk.take({ card: legacyCard, skill: legacySkill })
    running.gaps.started(lastAliveAt)
    for (const entry of this.#table) running.runner.dispatch(entry, { type: 'look' })
    metrics.onCollect(() => this.#snapshot())
    this.#problem = null
    this.#cards.refresh()
    running.main.start()
    running.bindings.start()
    this.#every(ALIVE_INTERVAL_MS, () => this.#stillAlive(running))
    this.#every(this.options.settings.deltaSweepMs, () => sweepDeltas(this.#shared.deltas, this.#now()))
  }

  /** Why this route cannot take messages now; empty when it can. A connector that is away is no reason: it is shown. */
  notReady(): readonly string[] {
    const store = this.#running?.commits.healthy === false ? 'the store cannot be written' : null
    const reasons = [this.#problem, this.#desk.problem, store, this.#stopping ? 'stopping' : null]
    return reasons.filter((reason) => reason !== null).map((reason) => `${this.name}: ${reason}`)
  }

  /**
   * Stops: no new work, what runs is waited for up to the drain timeout, then links close and the rest is written. What is
   * not finished stays in the store.
   */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#shared.draining = true
    const running = this.#running
    this.#cards.stop()
    this.#desk.stop()
    if (running !== null) {
      if (!this.#lost) await this.#settled(running)
      this.#stillAlive(running)
      this.#silence(running)
      await Promise.all([running.main.close('the gateway stops'), running.tools.close('the gateway stops')])
      // What waits for a store that does not work is given up: it was never acked.
      await Promise.race([running.commits.drained(), this.#passed(this.options.settings.drainTimeoutMs)])
      running.runner.stop()
      running.commits.close()
    }
    for (const cancel of this.#cancels) cancel()
    // What waits is the next owner's: here it takes no room any more.
    for (const { channel } of this.#table) this.options.budget.usedBytes -= channel.waitingBytes
    await Promise.all([this.options.http.close(), this.options.files?.transfers.close(), this.options.metrics.remove()])
  }

  /** Another process owns the route: nothing may be done any more. */
  fenceLost(): void {
    if (this.#lost) return
    this.#lost = true
    this.#problem = 'another process owns this route'
    this.options.log.error('another process has taken this route: it stops here')
    const running = this.#running
    if (running !== null) {
      running.runner.stop()
      running.commits.close()
      this.#silence(running)
      this.closeLinks('another process serves this connector now')
      void Promise.all([running.main.close('fence lost'), running.tools.close('fence lost')])
    }
    this.options.onFenceLost?.()
  }

  /** Closes every xAgent link with 1012: the same connector may be served again a moment later. */
  closeLinks(reason: string): void {
    for (const link of this.#links) link.socket.close(1012, reason)
  }

  card(): HttpBody {
    return this.#desk.cardBody(this.#unserved())
  }

  skill(): HttpBody & { readonly headers?: Readonly<Record<string, string>> } {
    return this.#desk.skillBody(this.#unserved())
  }

  health(): HttpBody {
    return this.#desk.healthBody(this.#unserved())
  }

  ownsChannel(id: string): ChannelId | null {
    return this.#table.find(id as ChannelId)?.id ?? null
  }

  /** Copies a file that was only remembered, because xAgent asks for it. */
  fetchRemote(file: RemoteFile): Promise<Result<StoredFile>> {
    return this.#running?.fetcher?.remote(file) ?? Promise.resolve(err(wireError('file_not_available')))
  }

  onLinkOpened(socket: XagentLink): void {
    this.#links.add(socket)
  }

  onPacket(socket: XagentLink, packet: Packet): { readonly countsAgainstLimit: boolean } {
    const link = this.#links.get(socket.id)
    if (link !== undefined && this.#running !== null && this.#problem === null) {
      return { countsAgainstLimit: this.#running.north.handle(link, packet) }
    }
    socket.close(1013, 'this connector cannot be served yet')
    return { countsAgainstLimit: true }
  }

  onDrain(socket: XagentLink): void {
    for (const entry of this.#links.get(socket.id)?.channels.values() ?? []) this.#running?.runner.dispatch(entry, { type: 'drained', link: socket.id })
  }

  onLinkClosed(socket: XagentLink): void {
    const link = this.#links.get(socket.id)
    if (link === undefined) return
    this.#links.delete(socket.id)
    for (const [as, entry] of [...link.channels]) this.#running?.north.leave(link, entry, as)
    if (link.hello !== null) this.options.log.info({ link: socket.id }, 'an xAgent link has gone')
  }

  #parts(fence: Fence, facts: RouteFacts): RouteParts {
    const { options } = this
    const base = { options, desk: this.#desk, links: this.#links, table: this.#table, shared: this.#shared, ledger: this.#ledger, inference: this.#inference }
    return assembleParts(base, fence, facts, {
      south: this.#southEvents(),
      storeHealth: (healthy, error) => this.#storeHealth(healthy, error),
      fenceLost: () => this.fenceLost(),
      ended: (entry, ended) => this.#ended(entry, ended),
      authTrouble: (entry, reason) => this.#authTrouble(entry, reason),
      settledSouth: () => this.#settledSouth(),
      stopping: () => this.#stopping,
      now: () => this.#now(),
    })
  }

  #southEvents(): MainLinkEvents {
    const { log, metrics } = this.options
    return {
      onUp: ({ connectorId, deviations = [] }) => this.#legacyUp(connectorId, deviations),
      onDown: (reason) => this.#legacyDown(reason),
      onPacket: (packet) => this.#fromConnector(packet),
      onUndecodable: ({ code, message }, bytes) => {
        metrics.filtered('inbound', 'undecodable')
        log.warn({ problem: message ?? code, bytes }, 'the connector sent a frame that is no packet')
      },
      // A connector that stays away says so now and then, not ten times a second; a Card that cannot be fetched says so itself.
      onDialFailed: (reason, attempt, cause) => {
        log[reason !== CARD_UNKNOWN.reason && (attempt === 1 || attempt % 100 === 0) ? 'warn' : 'debug']({ reason, attempt }, 'the connector cannot be reached')
        // An upgraded connector refuses the profile of its earlier Card.
        if (cause === 'denied' || (cause === 'refused' && attempt % CARD_EVERY_REFUSALS === 1)) this.#cards.refresh()
      },
    }
  }

  /** A packet that meets a bug of ours is lost and said so; it takes neither the link nor the process with it. */
  #fromConnector(packet: Packet): void {
    try {
      this.#running?.south.handle(packet)
    } catch (error) {
      this.options.log.error({ err: error, type: packet.type.slice(0, 64) }, 'a packet of the connector could not be handled: this is a bug')
    }
  }

  #legacyUp(connectorId: LegacyConnectorId | null, deviations: readonly string[]): void {
    const running = this.#running
    if (running === null) return
    const { log, metrics } = this.options
    if (connectorId !== null && connectorId !== running.keeper.facts.legacyConnectorId) running.keeper.save({ legacyConnectorId: connectorId })
    metrics.deviations(deviations)
    metrics.reconnected('legacy')
    log.info({ channels: this.#table.size }, 'the connector is connected')
    running.board.legacyUp()
    running.opener.linkUp()
    this.#cards.refresh()
  }

  #legacyDown(reason: string): void {
    const running = this.#running
    if (running === null || this.#stopping) return
    this.options.log.warn({ reason }, 'the connector is gone')
    running.gaps.lost()
    running.board.legacyLost()
    for (const entry of this.#table) running.runner.dispatch(entry, { type: 'legacy_changed', open: false })
  }

  /** No open is outstanding: unknown pushes can be judged, and when every channel is open a gap is over. */
  #settledSouth(): void {
    const running = this.#running
    if (running === null) return
    running.south.settle()
    if (!running.main.up || ![...this.#table].every((entry) => entry.channel.legacyOpen)) return
    running.gaps.closed()
    this.#stillAlive(running)
  }

  /** A later start counts its gap from here. */
  #stillAlive(running: RouteParts): void {
    if (running.main.up && !running.gaps.open) running.keeper.save({ lastAliveAt: this.#now() })
  }

  /** DESIGN §7: a store that fails pauses reading, whatever the preset says. */
  #storeHealth(healthy: boolean, error: StoreError | null): void {
    if (healthy) {
      this.options.log.info('the store works again')
      this.#running?.main.resume()
    } else {
      this.options.log.error({ err: error }, 'the store cannot be written: reading from the connector is paused')
      this.#running?.main.pause()
    }
  }

  #ended(entry: Entry | null, ended: Ended): void {
    logOutcome(this.options.log, { route: this.name, channelId: entry?.id ?? null }, ended)
    this.options.metrics.ended(ended)
    if (ended.deadLetterId !== null) this.#running?.housekeeping.added(ended.deadLetterBytes)
    const delivered = ended.direction === 'outbound' && ended.outcome === 'accepted'
    if (delivered && entry !== null && entry.authTrouble !== null) this.#authTrouble(entry, null)
  }

  /** The platform refuses the bound account, or takes it again (DESIGN §5, outcome class `auth`). */
  #authTrouble(entry: Entry, reason: string | null): void {
    entry.authTrouble = reason
    this.#running?.board.show(entry)
  }

  #takeCard(legacy: KeptCard, deviations: readonly string[]): string | null {
    const keeper = this.#running?.keeper
    if (keeper === undefined) return 'the route is starting'
    const refused = this.#desk.take(legacy)
    if (refused !== null) return refused
    if (keeper.keepCard(legacy)) this.options.metrics.deviations(deviations)
    return null
  }

  /** A connector that was upgraded to another profile, or back: its links say hello anew. */
  #speak(profile: ProfileId): void {
    const before = this.#spoken
    this.#spoken = profile
    if (before === null || before === profile) return
    this.options.log.warn({ profile, before }, 'the Card of the connector lists another profile now: its links say hello anew')
    // What the platform said through the other profile's tools says nothing any more.
    for (const entry of this.#table) entry.authTrouble = null
    this.#running?.rehello('the Card lists another profile')
  }

  #unserved(): string | null {
    return this.#problem ?? (this.#desk.card === null ? this.#cards.problem : null)
  }

  #snapshot(): RouteSnapshot {
    const running = this.#running
    return routeSnapshot({
      table: this.#table, links: this.#links, ledger: this.#ledger, now: this.#now(), owned: running !== null && this.#problem === null,
      legacyUp: running?.main.up ?? false, paused: running?.commits.healthy === false, deadLetters: running?.housekeeping.deadLetters ?? 0,
      deltaStreams: openStreams(this.#shared.deltas), held: running?.south.held ?? 0, storeDifference: running?.housekeeping.storeDifference ?? { inbound: 0, outbound: 0 },
    })
  }

  /** No timer and no open of this route acts any more. */
  #silence(running: RouteParts): void {
    running.opener.stop()
    running.board.stop()
    running.bindings.stop()
    running.fetcher?.stop()
    running.typing.stop()
    running.housekeeping.stop()
  }

  /** Until no call runs and no ack is awaited, at most for the drain timeout. */
  async #settled(running: RouteParts): Promise<void> {
    const begun = ({ jobs }: Channel): boolean => [...jobs.values()].some(({ phase }) => phase !== 'queued')
    const busy = (): boolean => running.tools.running > running.typing.running || running.relayed.running > 0 || [...this.#table].some(({ channel }) => channel.inFlight.size > 0 || begun(channel))
    const until = this.options.clock.monotonic() + this.options.settings.drainTimeoutMs
    while (busy() && this.options.clock.monotonic() < until) await this.#passed(DRAIN_POLL_MS)
  }

  #now(): number {
    return Math.round(this.options.clock.wall())
  }

  #passed(ms: number): Promise<void> {
    return new Promise((resolve) => this.#after(ms, resolve))
  }

  #after(ms: number, fn: () => void): void {
    const cancel = this.options.clock.timer(ms, () => {
      this.#cancels.delete(cancel)
      fn()
    })
    this.#cancels.add(cancel)
  }

  #every(ms: number, fn: () => void): void {
    this.#after(ms, () => {
      fn()
      this.#every(ms, fn)
    })
  }
}
