/**
 * One fronted connector: joins the xAgent side, the core and the legacy side. It wires; what the parts mean stands in them.
 */
import type { Ended } from '../core/effect.js'
import { imbalance, newLedger, type Ledger } from '../core/ledger.js'
import { RECORD_VERSION, ROUTE_KEY, type RouteRecord } from '../core/record.js'
import { waitingCount, type Budget, type Shared } from '../core/state.js'
import { newFlushGate } from '../core/flush.js'
import { connectorLinks, type ConnectorLinksOptions } from '../legacy/connector-links.js'
import type { LegacyHttp, MainLink, ToolLinks } from '../legacy/port.js'
import type { Clock } from '../ops/clock.js'
import type { Logger } from '../ops/logger.js'
import { logOutcome } from '../ops/outcome-log.js'
import type { RouteMetrics, RouteSnapshot } from '../ops/route-metrics.js'
import type { Catalog } from '../protocol/catalog.js'
import { wireError, type StoreError } from '../protocol/errors.js'
import type { ConnectorCardId, ConnectorId, LegacyConnectorId, LinkId } from '../protocol/ids.js'
import { IM_V1 } from '../protocol/im-v1.js'
import type { JsonObject, Packet } from '../protocol/packet.js'
import { PROTOCOL_VERSION } from '../protocol/version.js'
import type { Fence, Store } from '../store/port.js'
import { projectCard, type ProjectedCard } from '../translate/card.js'
import type { Preset } from '../translate/preset.js'
import { cardTools } from '../translate/reply-target.js'
import type { Skill } from '../translate/skill.js'
import type { HttpBody, NorthRoute, XagentLink } from '../xagent/port.js'
import { CardSource } from './card-source.js'
import { ChannelOpener } from './channel-opener.js'
import { ChannelRunner } from './channel-runner.js'
import { ChannelTable, type Entry } from './channel-table.js'
import { CommitQueue } from './commit-queue.js'
import type { RouteContext, RouteFacts, RouteSettings } from './context.js'
import { DescriptorBoard } from './descriptor-board.js'
import { GapWatch } from './gap-watch.js'
import { Housekeeping } from './housekeeping.js'
import { LegacyCalls } from './legacy-calls.js'
import { NorthLinks } from './north-link.js'
import { NorthPackets } from './north-packets.js'
import { loadChannels, loadFacts } from './route-load.js'
import { SouthPackets } from './south-packets.js'

const ALIVE_INTERVAL_MS = 5_000
const CARD_PATIENCE_MS = 3_000
const DRAIN_POLL_MS = 50

export interface RouteOptions {
  readonly settings: RouteSettings
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: RouteMetrics
  readonly catalog: Catalog
  readonly budget: Budget
  readonly flushChannels: number
  readonly http: LegacyHttp
  readonly links: Omit<ConnectorLinksOptions, 'hello' | 'clock' | 'supportedProfiles'>
  /** The preset for a connector's card id, overrides applied. */
  readonly presetFor: (cardId: string | null) => Preset
  readonly skillFor: (cardId: string) => Skill | null
  readonly build: JsonObject
  readonly apiKeyRequired: boolean
  readonly newId: (prefix: string) => string
  /** Claims a card id for this route; another route's name when that serves it already. */
  readonly claimCard: (cardId: ConnectorCardId) => string | null
}

export class Route implements NorthRoute {
  readonly name
  readonly #links = new NorthLinks()
  readonly #table = new ChannelTable()
  readonly #ledger: Ledger = newLedger()
  readonly #shared: Shared
  readonly #cards: CardSource
  readonly #cardWaiters = new Set<(known: boolean) => void>()
  readonly #cancels = new Set<() => void>()
  #card: ProjectedCard | null = null
  #running: Running | null = null
  #stopping = false
  #problem: string | null = 'the route is starting'

  constructor(private readonly options: RouteOptions) {
    this.name = options.settings.name
    this.#shared = {
      limits: options.settings.limits,
      dialect: { preset: options.presetFor(null), tools: new Map() },
      budget: options.budget,
      gate: newFlushGate(options.flushChannels),
      run: options.newId('').toLowerCase().replace(/[^a-z0-9]/g, '').slice(0, 10),
      nextSeq: Math.round(options.clock.wall()) * 1_000,
      nextDeadLetter: 0,
      jitterSeed: Math.round(options.clock.wall()) >>> 0,
    }
    this.#cards = new CardSource({ http: options.http, clock: options.clock, log: options.log, onCard: (card) => this.#takeCard(card.body, card.cardId, card.deviations) })
  }

  /** Loads, then listens on both sides. `fence` proves the ownership under which everything is written. */
  async start(fence: Fence): Promise<void> {
    const facts = await loadFacts(this.options.store, this.name)
    const running = this.#assemble(fence, facts)
    this.#running = running
    // First what is there, then what loading adds to it.
    await running.housekeeping.start()
    await loadChannels(this.options.store, running.context, (entry, effects) => running.runner.perform(entry, effects))
    if (facts.legacyCard !== null) this.#restoreCard(facts.legacyCard)
    running.gaps.started(facts.lastAliveAt)
    for (const entry of this.#table) running.runner.dispatch(entry, { type: 'look' })
    this.options.metrics.onCollect(() => this.#snapshot())
    this.#problem = null
    this.#cards.refresh()
    running.main.start()
    this.#every(ALIVE_INTERVAL_MS, () => { if (running.main.up && !running.gaps.open) this.#saveFacts({ lastAliveAt: this.#now() }) })
  }

  /** Why this route cannot take messages now; empty when it can. A connector that is away is no reason: it is shown. */
  notReady(): readonly string[] {
    const reasons = [this.#problem, this.#running?.commits.healthy === false ? 'the store cannot be written' : null, this.#stopping ? 'stopping' : null]
    return reasons.filter((reason) => reason !== null).map((reason) => `${this.name}: ${reason}`)
  }

  /**
   * Stops: no new work, what runs is waited for up to the drain timeout, then links close and the rest is written. What is
   * not finished stays in the store.
   */
  async stop(): Promise<void> {
    this.#stopping = true
    const running = this.#running
    this.#cards.stop()
    if (running !== null) {
      await this.#settled(running)
      if (running.main.up && !running.gaps.open) this.#saveFacts({ lastAliveAt: this.#now() })
      running.opener.stop()
      running.board.stop()
      running.housekeeping.stop()
      await Promise.all([running.main.close('the gateway stops'), running.tools.close('the gateway stops')])
      await this.#written(running)
      running.runner.stop()
      running.commits.close()
    }
    for (const cancel of this.#cancels) cancel()
    await Promise.all([this.options.http.close(), this.options.metrics.remove()])
  }

  /** Another process owns the route: nothing may be done any more. */
  fenceLost(): void {
    this.#problem = 'another process owns this route'
    this.options.log.error('another process has taken this route: it stops here')
    const running = this.#running
    if (running === null) return
    running.runner.stop()
    running.commits.close()
    running.housekeeping.stop()
    running.opener.stop()
    for (const link of this.#links) link.socket.close(1012, 'another process serves this connector now')
    void Promise.all([running.main.close('fence lost'), running.tools.close('fence lost')])
  }

  card(): HttpBody {
    return this.#served((card) => ({ status: 200, contentType: 'application/json', body: JSON.stringify(card.card) }))
  }

  skill(): HttpBody & { readonly headers?: Readonly<Record<string, string>> } {
    return this.#served((card) => ({
      status: 200, contentType: 'text/markdown; charset=utf-8', body: card.skill.markdown,
      headers: { 'X-XAgent-Skill-ID': card.skill.id, 'X-XAgent-Skill-SHA256': card.skill.sha256 },
    }))
  }

  /** 200 while the connector is away: its Descriptors say so, and the gateway itself is well (DESIGN §3). */
  health(): HttpBody {
    return this.#served((card) => ({
      status: 200, contentType: 'application/json',
      body: JSON.stringify({ status: 'ok', connector_card_id: card.cardId, connector_card_version: card.version, protocol_version: PROTOCOL_VERSION, build: this.options.build }),
    }))
  }

  onLinkOpened(socket: XagentLink): void {
    this.#links.add(socket)
  }

  onPacket(socket: XagentLink, packet: Packet): { readonly countsAgainstLimit: boolean } {
    const link = this.#links.get(socket.id)
    if (link === undefined || this.#running === null) {
      socket.close(1013, 'this connector cannot be served yet')
      return { countsAgainstLimit: true }
    }
    return { countsAgainstLimit: this.#running.north.handle(link, packet) }
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

  #assemble(fence: Fence, facts: RouteFacts): Running {
    const { options } = this
    const commits = new CommitQueue(options.store, fence, options.clock, {
      onHealth: (healthy, error) => this.#storeHealth(healthy, error),
      onFenceLost: () => this.fenceLost(),
    })
    const context: RouteContext = {
      settings: options.settings, clock: options.clock, log: options.log, metrics: options.metrics, catalog: options.catalog,
      table: this.#table, shared: this.#shared, ledger: this.#ledger, commits, facts,
      card: () => this.#card, newId: options.newId, now: () => this.#now(),
    }
    const { main, tools } = connectorLinks(
      {
        ...options.links, clock: options.clock, supportedProfiles: [IM_V1],
        hello: () => (this.#card === null ? null : { cardId: this.#card.cardId, connectorId: facts.legacyConnectorId ?? '' }),
      },
      {
        onUp: (hello) => this.#legacyUp(hello.connectorId, hello.deviations ?? []),
        onDown: (reason) => this.#legacyDown(reason),
        onPacket: (packet) => this.#running?.south.handle(packet),
        onUndecodable: (error, bytes) => this.#undecodable(error.message ?? error.code, bytes),
        onDialFailed: (reason, attempt) => this.#dialFailed(reason, attempt),
      },
    )
    const board = new DescriptorBoard(context, this.#links, main)
    const calls = new LegacyCalls(context, tools, () => runner)
    const runner: ChannelRunner = new ChannelRunner(context, this.#table, {
      send: (link, packet) => this.#send(link, packet),
      invoke: (entry, effect) => calls.invokeStep(entry, effect),
      reopen: (entry, effect) => opener.reopen(entry, (connected) => runner.dispatch(entry, { type: 'reopened', messageId: effect.messageId, connected })),
      ended: (entry, ended) => this.#ended(entry, ended),
      authDoubtful: (entry, reason) => {
        entry.authTrouble = reason
        board.show(entry)
      },
      trim: (entry, kind) => housekeeping.trim(entry, kind),
    })
    const gaps = new GapWatch(context, () => this.#saveFacts({}))
    const south = new SouthPackets(context, runner, {
      opensOutstanding: () => opener.outstanding,
      showDescriptor: (entry) => board.show(entry),
      ended: (ended) => this.#ended(null, ended),
    })
    const opener: ChannelOpener = new ChannelOpener(context, main, {
      onSouth: (entry, open) => runner.dispatch(entry, { type: 'legacy_changed', open }),
      onDescriptor: (entry) => board.show(entry),
      onSettled: () => {
        south.settle()
        if (!main.up || ![...this.#table].every((entry) => entry.channel.legacyOpen)) return
        gaps.closed()
        this.#saveFacts({ lastAliveAt: this.#now() })
      },
    })
    const housekeeping = new Housekeeping(context, options.store, () => (south.held > 0 ? null : this.#pending(true)), (entry) => runner.forget(entry))
    const north = new NorthPackets(context, this.#links, runner, opener, main, calls, {
      descriptor: (entry, as) => board.of(entry, as),
      showDescriptor: (entry) => board.show(entry),
      connectorId: (proposed) => this.#connectorId(proposed),
      whenCardKnown: (done) => this.#whenCardKnown(done),
      stopping: () => this.#stopping,
    })
    return { context, commits, main, tools, board, runner, gaps, south, opener, housekeeping, north }
  }

  #legacyUp(connectorId: LegacyConnectorId | null, deviations: readonly string[]): void {
    const running = this.#running
    if (running === null) return
    this.options.metrics.deviations(deviations)
    if (connectorId !== null && connectorId !== running.context.facts.legacyConnectorId) {
      running.context.facts.legacyConnectorId = connectorId
      this.#saveFacts({})
    }
    this.options.metrics.reconnected('legacy')
    this.options.log.info({ channels: this.#table.size }, 'the connector is connected')
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

  #dialFailed(reason: string, attempt: number): void {
    const level = attempt === 1 || attempt % 100 === 0 ? 'warn' : 'debug'
    this.options.log[level]({ reason, attempt }, 'the connector cannot be reached')
  }

  #undecodable(problem: string, bytes: number): void {
    this.options.metrics.filtered('inbound', 'undecodable')
    this.options.log.warn({ problem, bytes }, 'the connector sent a frame that is no packet')
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
    if (ended.outcome === 'accepted' && ended.direction === 'outbound' && entry !== null && entry.authTrouble !== null) {
      entry.authTrouble = null
      this.#running?.board.show(entry)
    }
  }

  #send(id: LinkId, packet: Packet): 'queued' | 'full' | 'too_large' | 'closed' {
    return this.#links.get(id)?.socket.send(packet) ?? 'closed'
  }

  /** With an empty store a hello's non-empty `connector_id` is kept, else one of our own is made (DESIGN §3 Ids). */
  #connectorId(proposed: string | null): string {
    const facts = this.#running?.context.facts
    if (facts === undefined) return ''
    if (facts.connectorId === null) {
      facts.connectorId = (proposed ?? this.options.newId('conn_')) as ConnectorId
      this.#saveFacts({})
    }
    return facts.connectorId
  }

  #takeCard(body: JsonObject, cardId: ConnectorCardId, deviations: readonly string[]): string | null {
    const other = this.options.claimCard(cardId)
    if (other !== null) {
      this.#problem = `the connector "${other}" already serves the Card ${cardId}`
      return this.#problem
    }
    const facts = this.#running?.context.facts
    if (facts === undefined) return 'the route is starting'
    this.#problem = null
    if (JSON.stringify(facts.legacyCard) !== JSON.stringify(body)) {
      this.options.metrics.deviations(deviations)
      facts.legacyCard = body
      this.#saveFacts({})
    }
    this.#restoreCard(body)
    return null
  }

  #restoreCard(body: JsonObject): void {
    const cardId = typeof body['connector_card_id'] === 'string' ? body['connector_card_id'] : ''
    const preset = this.options.presetFor(cardId)
    const previous = this.#card
    const card = projectCard(body, { preset, build: this.options.build, apiKeyRequired: this.options.apiKeyRequired, files: false, skill: this.options.skillFor(cardId) })
    if (card === null) return
    this.#card = card
    this.#shared.dialect = { preset, tools: cardTools(body) }
    this.options.metrics.setTools(this.#shared.dialect.tools.keys())
    if (previous?.version !== card.version) {
      this.options.log.info({ cardId, version: card.version, preset: preset.name }, 'the Card is served')
      this.#running?.board.showAll()
    }
    for (const waiter of this.#cardWaiters) waiter(true)
    this.#cardWaiters.clear()
  }

  #whenCardKnown(done: (known: boolean) => void): void {
    if (this.#card !== null) return done(this.#problem === null)
    const cancel = this.#after(CARD_PATIENCE_MS, () => {
      this.#cardWaiters.delete(waiter)
      done(false)
    })
    const waiter = (known: boolean): void => {
      cancel()
      done(known)
    }
    this.#cardWaiters.add(waiter)
  }

  #served<T extends HttpBody>(body: (card: ProjectedCard) => T): T | { readonly status: 503; readonly reason: string } {
    const card = this.#card
    if (card === null || this.#problem !== null) return { status: 503, reason: this.#problem ?? this.#cards.problem ?? wireError('connector_unavailable').message ?? '' }
    return body(card)
  }

  #saveFacts(change: Partial<RouteFacts>): void {
    const running = this.#running
    if (running === null) return
    Object.assign(running.context.facts, change)
    const { facts } = running.context
    const record: RouteRecord = {
      v: RECORD_VERSION, connectorId: facts.connectorId, legacyConnectorId: facts.legacyConnectorId, card: facts.legacyCard, lastAliveAt: facts.lastAliveAt, gaps: facts.gaps,
    }
    running.commits.push([{ op: 'put', kind: 'route', key: ROUTE_KEY, value: record }], null)
  }

  #snapshot(): RouteSnapshot {
    const now = this.#now()
    const entries = [...this.#table]
    const pending = this.#pending(false)
    const oldest = entries.reduce((least, { channel }) => Math.min(least, ...[...channel.bySeq.values()].slice(0, 1).map((message) => message.takenAt)), Infinity)
    const difference = this.#running?.housekeeping.storeDifference ?? { inbound: 0, outbound: 0 }
    const books = (direction: 'inbound' | 'outbound'): number => imbalance(this.#ledger[direction], pending[direction]) || difference[direction]
    return {
      owned: this.#running !== null && this.#problem === null,
      pending,
      pendingBytes: entries.reduce((sum, { channel }) => sum + channel.waitingBytes, 0),
      oldestPendingAgeMs: oldest === Infinity ? 0 : now - oldest,
      blockedChannels: entries.filter(({ channel }) => channel.waiting.some((message) => !message.ended && message.notBefore > now)).length,
      deadLetters: this.#running?.housekeeping.deadLetters ?? 0,
      legacyUp: this.#running?.main.up ?? false,
      xagentVersions: [...this.#links].flatMap((link) => (link.hello === null ? [] : [link.hello.version])),
      channelsOpen: { legacy: entries.filter(({ channel }) => channel.legacyOpen).length, xagent: entries.filter(({ channel }) => channel.link !== null).length },
      linksPaused: this.#running?.commits.healthy === false ? 1 : 0,
      ledgerImbalance: { inbound: books('inbound'), outbound: books('outbound') },
    }
  }

  /** What has been received and has not ended. `stored`: only what the store must hold as well. */
  #pending(stored: boolean): { inbound: number; outbound: number } {
    let inbound = stored ? 0 : (this.#running?.south.held ?? 0)
    let outbound = 0
    for (const { channel } of this.#table) {
      inbound += waitingCount(channel) + (stored ? 0 : channel.arrivals.length)
      const running = channel.line.filter((job) => (job.record !== null || job.ending !== null) && !channel.deferred.has(job.final.messageId))
      outbound += channel.deferred.size + running.length
    }
    return { inbound, outbound }
  }

  /** Until no call runs and no ack is awaited, at most for the drain timeout. */
  async #settled(running: Running): Promise<void> {
    const busy = (): boolean => running.tools.running > 0 || [...this.#table].some(({ channel }) => channel.inFlight.size > 0 || channel.jobs.size > 0)
    const until = this.options.clock.monotonic() + this.options.settings.drainTimeoutMs
    while (busy() && this.options.clock.monotonic() < until) await new Promise<void>((resolve) => this.#after(DRAIN_POLL_MS, resolve))
  }

  /** What waits for a store that does not work is given up at the drain timeout: it was never acked. */
  async #written(running: Running): Promise<void> {
    await Promise.race([running.commits.drained(), new Promise<void>((resolve) => this.#after(this.options.settings.drainTimeoutMs, resolve))])
  }

  #now(): number {
    return Math.round(this.options.clock.wall())
  }

  #after(ms: number, fn: () => void): () => void {
    const cancel = this.options.clock.timer(ms, () => {
      this.#cancels.delete(cancel)
      fn()
    })
    this.#cancels.add(cancel)
    return () => {
      this.#cancels.delete(cancel)
      cancel()
    }
  }

  #every(ms: number, fn: () => void): void {
    this.#after(ms, () => {
      fn()
      this.#every(ms, fn)
    })
  }
}

/** The parts of a route that has been started. */
interface Running {
  readonly context: RouteContext
  readonly commits: CommitQueue
  readonly main: MainLink
  readonly tools: ToolLinks
  readonly board: DescriptorBoard
  readonly runner: ChannelRunner
  readonly gaps: GapWatch
  readonly south: SouthPackets
  readonly opener: ChannelOpener
  readonly housekeeping: Housekeeping
  readonly north: NorthPackets
}
