/** Composition root: store, routes, listeners; start, readiness, stop. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Budget } from './core/state.js'
import { choosePreset } from './config/preset-file.js'
import { configDiff, connectorTexts, type ConfigDiff, type ConnectorTexts } from './config/reload.js'
import type { ConnectorConfig, GatewayConfig } from './config/schema.js'
import { FileStore } from './files/file-store.js'
import { sweepRegularly } from './files/sweeping.js'
import { LegacyFiles } from './legacy/files.js'
import { UndiciLegacyHttp } from './legacy/http.js'
import { startAdminServer, type AdminServer } from './ops/admin-server.js'
import type { BuildInfo } from './ops/build-info.js'
import { systemClock, type Clock } from './ops/clock.js'
import { listenerLog } from './ops/listener-log.js'
import { LogSecrets, createLogger, type Logger } from './ops/logger.js'
import { Metrics } from './ops/metrics.js'
import type { RouteMetrics } from './ops/route-metrics.js'
import type { Catalog } from './protocol/catalog.js'
import { ConfigError, err, wireError } from './protocol/errors.js'
import type { ConnectorCardId, RouteName } from './protocol/ids.js'
import type { RouteSettings } from './route/context.js'
import { OwnedRoute } from './route/owned-route.js'
import { Route } from './route/route.js'
import { meteredStore } from './store/metered.js'
import { openStore } from './store/open.js'
import type { Store } from './store/port.js'
import type { Preset } from './translate/preset.js'
import { skillFromFile, skillName, type Skill } from './translate/skill.js'
import { startXagentServer, type XagentServer } from './xagent/server.js'

export interface GatewayOptions {
  readonly config: GatewayConfig
  readonly presets: ReadonlyMap<string, Preset>
  readonly catalog: Catalog
  readonly build: BuildInfo
  /** Default: by `log` of the configuration, to standard output. */
  readonly logger?: Logger
  readonly clock?: Clock
  /** Another way to open the store that the configuration names. */
  readonly openStore?: typeof openStore
}

export interface Gateway {
  /** Ports in use, also where the configuration said 0. */
  readonly ports: { readonly xagent: number; readonly admin: number }
  /** Why the gateway cannot take messages now; empty = ready. */
  notReady(): Promise<readonly string[]>
  /**
   * Takes another configuration over: only connectors that it changes are touched. Throws ConfigError, with everything as it was,
   * where a change needs a restart.
   */
  reload(config: GatewayConfig): Promise<ConfigDiff>
  /** Drains and closes everything; what is unfinished stays in the store. */
  stop(reason: string): Promise<void>
}

/** Starts everything. Throws ConfigError for what is wrong in the configuration, StoreError when the store cannot be opened. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, catalog, build } = options
  const problems = presetProblems(options)
  if (problems.length > 0) throw new ConfigError(problems)
  const clock = options.clock ?? systemClock()
  const secrets = new LogSecrets(secretsOf(config))
  const log = options.logger ?? createLogger({ ...config.log, secrets })
  const metrics = new Metrics({ build, packetTypes: catalog.types, processMetrics: true })
  const store = meteredStore((options.openStore ?? openStore)(config.store, {
    sync: config.storeSync, now: () => clock.wall(), redis: config.redis,
    onUnreadable: (kind, key) => log.error({ kind, key }, 'a stored record cannot be read and is set aside'),
  }), metrics, clock)
  const files = await openFiles(config, clock, log).catch(async (error: unknown) => {
    await store.close()
    throw error
  })
  metrics.filesFrom(() => files.usage)
  const routes = new Map<RouteName, OwnedRoute>()
  const opened: Opened = { stopSweeping: sweepRegularly(files, clock, config.retention.sweepIntervalMs, log) }
  try {
    const shared: SharedParts = { options, clock, log, metrics, store, files, budget: { usedBytes: 0, maxBytes: config.limits.maxPendingBytes }, cards: new Map() }
    for (const connector of config.connectors) routes.set(connector.name as RouteName, buildRoute(connector, config, shared))
    opened.xagent = await startXagentServer({
      ...config.listen, apiKeys: config.xagent.apiKeys, limits: config.limits, clock, newId: () => newId(''),
      route: (name) => routes.get(name as RouteName)?.route, observe: listenerLog(log, metrics),
      files: { store: files, fetchRemote: async (file) => routes.get(file.route)?.route.fetchRemote(file) ?? err(wireError('file_not_available')) },
    })
    const notReady = async (): Promise<readonly string[]> => [...(await storeProblem(store)), ...[...routes.values()].flatMap((route) => route.notReady())]
    opened.admin = await startAdminServer({ ...config.admin, metrics, notReady, onError: (error) => log.error({ err: error }, 'an admin request failed') })
    await Promise.all([...routes.values()].map((route) => route.start()))
    const ports = { xagent: opened.xagent.port, admin: opened.admin.port }
    log.info({ ...ports, connectors: [...routes.keys()], version: build.version }, 'the gateway is listening')
    const reloading = new Reloading(config, routes, shared, (after) => {
      secrets.replace(secretsOf(after))
      opened.xagent?.replaceKeys(after.xagent.apiKeys)
    })
    return { ports, notReady, reload: (after) => reloading.reload(after), stop: (reason) => reloading.last.then(() => stop(reason, log, routes, opened, metrics, store, files)) }
  } catch (error) {
    await stop('start failed', log, routes, opened, metrics, store, files)
    throw error
  }
}

/** What was started so far. */
interface Opened {
  xagent?: XagentServer
  admin?: AdminServer
  readonly stopSweeping: () => void
}

async function stop(
  reason: string, log: Logger, routes: ReadonlyMap<RouteName, OwnedRoute>, opened: Opened, metrics: Metrics, store: Store, files: FileStore,
): Promise<void> {
  log.info({ reason }, 'the gateway stops')
  opened.xagent?.stopAccepting()
  // Acks are collected while links are still open: a link that was asked to close delivers nothing more.
  await Promise.all([...routes.values()].map((route) => route.stop()))
  await opened.xagent?.close(1012, 'the gateway restarts')
  await opened.admin?.close()
  metrics.close()
  opened.stopSweeping()
  await files.close()
  await store.close()
  log.info('the gateway has stopped')
}

function openFiles(config: GatewayConfig, clock: Clock, log: Logger): Promise<FileStore> {
  const { dir, ttlMs, maxFileBytes, maxTotalBytes } = config.files
  return FileStore.open({ dir, ttlMs, maxFileBytes, maxTotalBytes, now: () => Math.round(clock.wall()), log })
}

interface SharedParts {
  readonly options: GatewayOptions
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  readonly store: Store
  readonly files: FileStore
  readonly budget: Budget
  /** Card id → the route that serves it: one server per card id (PROTOCOL "Identity and lease"). */
  readonly cards: Map<ConnectorCardId, RouteName>
}

/** Other configurations, one after the other. */
class Reloading {
  #config: GatewayConfig
  #texts: ConnectorTexts
  #last: Promise<unknown> = Promise.resolve()

  constructor(config: GatewayConfig, private readonly routes: Map<RouteName, OwnedRoute>, private readonly shared: SharedParts, private readonly onTaken: (config: GatewayConfig) => void) {
    this.#config = config
    this.#texts = connectorTexts(config)
  }

  /** Resolves when none is being taken over. */
  get last(): Promise<unknown> {
    return this.#last.catch(() => {})
  }

  reload(config: GatewayConfig): Promise<ConfigDiff> {
    const taken = this.last.then(() => this.#take(config))
    this.#last = taken
    return taken
  }

  async #take(after: GatewayConfig): Promise<ConfigDiff> {
    const { log, options, cards } = this.shared
    const diff = configDiff(this.#config, after, this.#texts)
    const problems = [...diff.fixed.map((key) => `${key}: a change of this key needs a restart`), ...presetProblems({ ...options, config: after })]
    if (problems.length > 0) throw new ConfigError(problems)
    // Read once more before anything is touched: a file that is gone must change nothing.
    this.#texts = connectorTexts(after)
    this.#config = after
    this.onTaken(after)
    log.info({ ...diff }, 'the configuration is taken over')
    await Promise.all([...diff.removed, ...diff.restarted].map(async (name) => {
      const route = this.routes.get(name as RouteName)
      await route?.stop()
      route?.route.closeLinks('the connector is configured anew')
      this.routes.delete(name as RouteName)
      for (const [cardId, holder] of cards) if (holder === name) cards.delete(cardId)
    }))
    await Promise.all(after.connectors.filter(({ name }) => !this.routes.has(name as RouteName)).map((connector) => {
      const route = buildRoute(connector, after, this.shared)
      this.routes.set(connector.name as RouteName, route)
      return route.start()
    }))
    return diff
  }
}

function buildRoute(connector: ConnectorConfig, config: GatewayConfig, { options, clock, log: parent, metrics, store, files, budget, cards }: SharedParts): OwnedRoute {
  const name = connector.name as RouteName
  const log = parent.child({ route: name })
  const endpoint = { baseUrl: connector.url, apiKey: connector.apiKey, ca: connector.ca === null ? null : readFileSync(connector.ca, 'utf8'), maxFrameBytes: config.limits.legacyMaxFrameBytes }
  const skillText = connector.skill === null ? null : readFileSync(connector.skill, 'utf8')
  const make = (onFenceLost: () => void): Route => new Route({
    settings: settingsOf(connector, config), store, clock, log, metrics: routeMetrics(metrics, name, config), onFenceLost, catalog: options.catalog, budget,
    flushChannels: config.delivery.flushChannels,
    http: new UndiciLegacyHttp({ endpoint, clock }),
    files: {
      store: files, transfers: new LegacyFiles({ endpoint, hosts: { allowed: config.files.allowedHosts, allowPrivate: config.files.allowPrivate }, clock }),
      inbound: config.files.inbound, fetchTimeoutMs: config.files.fetchTimeoutMs, publicUrl: config.listen.publicUrl,
    },
    links: { endpoint, toolLinks: connector.toolLinks, outboundWaitMs: config.delivery.outboundWaitMs, random: Math.random },
    presetFor: (cardId) => choosePreset(options.presets, cardId, connector),
    skillFor: (cardId, own) => chosenSkill(cardId, skillText, own, log),
    build: { ...options.build },
    apiKeyRequired: config.xagent.apiKeys.length > 0,
    newId,
    claimCard: (cardId) => {
      const holder = cards.get(cardId) ?? name
      cards.set(cardId, holder)
      return holder === name ? null : holder
    },
  })
  return new OwnedRoute({ name, make, store, clock, log, leaseMs: config.ownership.leaseMs })
}

function routeMetrics(metrics: Metrics, name: RouteName, { retention, limits }: GatewayConfig): RouteMetrics {
  const made = metrics.route(name)
  made.limit('ttl_seconds', retention.ttlMs / 1_000)
  made.limit('max_messages', retention.maxMessages)
  made.limit('max_bytes', retention.maxBytes)
  made.limit('max_channels', limits.maxChannels)
  return made
}

/** The Skill of the configuration before the connector's own; null = one is generated. */
function chosenSkill(cardId: string, configured: string | null, own: string | null, log: Logger): Skill | null {
  const skill = configured === null ? null : skillFromFile(cardId, configured)
  if (skill !== null) return skill
  if (configured !== null) log.error({ expected: skillName(cardId) }, 'the Skill file has another name in its header: it is not served')
  return own === null ? null : skillFromFile(cardId, own)
}

function settingsOf(connector: ConnectorConfig, config: GatewayConfig): RouteSettings {
  const { retention, delivery } = config
  return {
    name: connector.name as RouteName,
    rules: { accept: connector.accept, commands: connector.commands, senderLine: connector.senderLine },
    limits: {
      ttlMs: retention.ttlMs, maxMessages: retention.maxMessages, maxBytes: retention.maxBytes, overflow: retention.overflow, window: delivery.window,
      ackTimeoutMs: delivery.ackTimeoutMs, backoffInitialMs: delivery.backoff.initialMs, backoffMaxMs: delivery.backoff.maxMs, maxAttempts: delivery.maxAttempts,
      outboundQueue: delivery.outboundQueue, outboundWaitMs: delivery.outboundWaitMs, turns: config.turns,
      deltas: { ttlMs: config.deltas.ttlMs, maxStreams: config.deltas.maxStreams, maxBytes: config.deltas.maxBytes }, activityTimeoutMs: config.activity.timeoutMs,
    },
    maxChannels: config.limits.maxChannels,
    toolTimeoutMs: delivery.toolTimeoutMs,
    drainTimeoutMs: delivery.drainTimeoutMs,
    sweepIntervalMs: retention.sweepIntervalMs,
    observe: config.boundary.mode === 'observe',
    deltaSweepMs: config.deltas.sweepIntervalMs,
    deadLetters: { max: retention.deadLetters, maxBytes: retention.deadLetterBytes, ttlMs: retention.deadLetterTtlMs },
  }
}

function presetProblems({ config, presets }: GatewayOptions): string[] {
  return config.connectors
    .filter(({ preset }) => preset !== 'auto' && !presets.has(preset))
    .map(({ name, preset }) => `connectors.${name}.preset: there is no preset "${preset}"; there are ${[...presets.keys()].join(', ')}`)
}

function secretsOf(config: GatewayConfig): string[] {
  const { xagent, admin, connectors, store } = config
  return [...xagent.apiKeys, admin.readToken, admin.writeToken, passwordIn(store), ...connectors.map(({ apiKey }) => apiKey)].filter((secret) => secret !== null && secret !== '') as string[]
}

/** A store's URL may hold a password, as it stands there and as it is meant. */
function passwordIn(store: string): string | null {
  return URL.canParse(store) ? decodeURIComponent(new URL(store).password) : null
}

async function storeProblem(store: Store): Promise<string[]> {
  try {
    await store.probe()
    return []
  } catch {
    return ['the store cannot be written']
  }
}

/** `prefix` + 120 random bits. */
function newId(prefix: string): string {
  return prefix + randomBytes(15).toString('base64url')
}
