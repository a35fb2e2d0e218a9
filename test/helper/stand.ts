/** One gateway between simulated connectors and simulated xAgents: the stand of every scenario test. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { loadCatalog, loadPresets } from '../../src/config/package-files.js'
import { parseConfig } from '../../src/config/load.js'
import { startGateway, type Gateway } from '../../src/gateway.js'
import { createLogger } from '../../src/ops/logger.js'
import { openStore } from '../../src/store/open.js'
import type { Store } from '../../src/store/port.js'
import { packetProblem, southProblem } from './north-schemas.js'
import { SimXagent, type SimXagentOptions } from '../../src/sim/xagent.js'
import { startSimConnector, type SimConnector, type SimConnectorOptions } from '../../src/sim/connector.js'

export const XAGENT_KEY = 'xagent-key-of-the-tests'
export const CONNECTOR_KEY = 'connector-key-of-the-tests'

export interface Stand {
  readonly connector: SimConnector
  gateway: Gateway
  /** Lines of the gateway's log, as objects. */
  readonly logs: Record<string, unknown>[]
  /** The log as it was written. */
  logText(): string
  readonly folder: string
  /** The Base URL that xAgent is given. */
  baseUrl(name?: string): string
  xagent(options?: Partial<SimXagentOptions>): SimXagent
  /** Stops the gateway and starts another on the same store. */
  /** `between` runs while nothing does. */
  restartGateway(between?: () => Promise<void>): Promise<void>
  /** Value of one series of /metrics; NaN when it is not there. */
  metric(name: string, labels?: Record<string, string>): Promise<number>
  metricsText(): Promise<string>
  close(): Promise<void>
}

export interface StandOptions {
  readonly kind?: SimConnectorOptions['kind']
  readonly dialect?: SimConnectorOptions['dialect']
  /** YAML of further keys of `files`, in one line. */
  readonly files?: string
  /** `listen.public_url`. */
  readonly publicUrl?: string
  /** YAML of further top-level keys. */
  readonly config?: string
  /** YAML of further keys of the connector, indented by four spaces. */
  readonly connectorConfig?: string
  /** YAML of further connectors, each a list item indented by two spaces. */
  readonly connectors?: string
  /** `memory:` or `lmdb` (in the stand's folder). */
  /** A URL is that of a Redis server. */
  readonly store?: 'memory' | 'lmdb' | `redis://${string}`
  /** `any`: packets of other shapes than the protocol's are part of the test. */
  readonly shapes?: 'any'
  /** What the store is wrapped in. */
  readonly wrapStore?: (store: Store) => Store
}

export interface Teardown {
  teardown(fn: () => Promise<void>): void
}

/** Starts everything on free loopback ports; `t` takes it down. */
export async function stand(t: Teardown, options: StandOptions = {}): Promise<Stand> {
  const folder = await mkdtemp(join(tmpdir(), 'xig-stand-'))
  const connector = await startSimConnector({ kind: options.kind ?? 'telegram', dialect: options.dialect ?? '1.0', apiKey: CONNECTOR_KEY })
  const clear = async (): Promise<void> => {
    if (connector.running) await connector.stop()
    await rm(folder, { recursive: true, force: true })
  }
  // Also where what follows fails.
  t.teardown(clear)
  const logs: Record<string, unknown>[] = []
  let text = ''
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString()
      for (const line of chunk.toString().split('\n')) if (line !== '') logs.push(JSON.parse(line) as Record<string, unknown>)
      done()
    },
  })
  const { config } = parseConfig('test.yaml', configText(options, connector.url, folder), {})
  const start = (): Promise<Gateway> => startGateway({
    config, presets: loadPresets(), catalog: loadCatalog(), build: { version: '0.0.0-test', build_time: '2026-01-01T00:00:00.000Z' },
    openStore: (url, settings) => (options.wrapStore ?? ((store) => store))(openStore(url, settings)),
    logger: createLogger({ level: 'info', pretty: false, secrets: [XAGENT_KEY, CONNECTOR_KEY], destination }),
  })
  const xagents: SimXagent[] = []
  const made: Stand = {
    connector, logs, folder,
    gateway: await start(),
    logText: () => text,
    baseUrl: (name = 'telegram') => `http://127.0.0.1:${made.gateway.ports.xagent}/${name}`,
    xagent(more = {}) {
      const xagent = new SimXagent({ baseUrl: made.baseUrl(), apiKey: XAGENT_KEY, ...more })
      xagents.push(xagent)
      return xagent
    },
    async restartGateway(between) {
      await made.gateway.stop('restart in a test')
      await between?.()
      made.gateway = await start()
    },
    async metricsText() {
      return (await fetch(`http://127.0.0.1:${made.gateway.ports.admin}/metrics`)).text()
    },
    async metric(name, labels = {}) {
      return metricValue(await made.metricsText(), name, labels)
    },
    async close() {
      for (const xagent of xagents) await xagent.terminate()
      await made.gateway.stop('end of a test')
      await clear()
      if (options.shapes !== 'any') checkPackets(connector, xagents)
    },
  }
  t.teardown(() => made.close())
  return made
}

/** Whatever a test was about: every packet that the gateway sent is one that protocol and profile know. */
function checkPackets(connector: SimConnector, xagents: readonly SimXagent[]): void {
  const north = xagents.flatMap((xagent) => xagent.events.all('packet').map(packetProblem))
  const south = connector.events.all('packet').map(({ packet }) => southProblem(packet))
  const problems = [...new Set([...north, ...south])].filter((problem) => problem !== null)
  if (problems.length > 0) throw new Error(`packets of the gateway that nobody knows: ${problems.join('; ')}`)
}

export interface OpenChannel {
  readonly xagent: SimXagent
  readonly channelId: string
  readonly legacyId: string
}

/** An xAgent with one open channel on which somebody is signed in. */
export async function openChannel({ connector, xagent: newXagent }: Stand, options: Partial<SimXagentOptions> = {}): Promise<OpenChannel> {
  const xagent = newXagent(options)
  await xagent.connect()
  const before = new Set(connector.channels().map(({ channelId }) => channelId))
  const { channelId } = await xagent.openChannel()
  const legacyId = connector.channels().map(({ channelId: id }) => id).find((id) => !before.has(id))
  if (legacyId === undefined) throw new Error('no channel was opened on the connector')
  connector.signIn(legacyId)
  return { xagent, channelId, legacyId }
}

/** The value of the series `xagent_gateway_<name>` that has all these labels. */
export function metricValue(text: string, name: string, labels: Record<string, string> = {}): number {
  const line = text.split('\n').find((candidate) =>
    (candidate.startsWith(`xagent_gateway_${name}{`) || candidate.startsWith(`xagent_gateway_${name} `)) &&
    Object.entries(labels).every(([key, value]) => candidate.includes(`${key}="${value}"`)))
  return line === undefined ? NaN : Number(line.slice(line.lastIndexOf(' ') + 1))
}

/** Resolves when the condition holds; asks again after every turn of the event loop, and gives up after `timeoutMs`. */
export async function until(condition: () => boolean | Promise<boolean>, what: string, timeoutMs = 10_000): Promise<void> {
  const end = Date.now() + timeoutMs
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`not within ${timeoutMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

function configText(options: StandOptions, connectorUrl: string, folder: string): string {
  return [
    `listen: { host: 127.0.0.1, port: 0${options.publicUrl === undefined ? '' : `, public_url: "${options.publicUrl}"`} }`,
    `files: { dir: "${join(folder, 'files')}", ${options.files ?? ''} }`,
    'admin: { port: 0 }',
    `xagent: { api_keys: ["${XAGENT_KEY}"] }`,
    `store: "${storeUrl(options.store, folder)}"`,
    options.config ?? '',
    'connectors:',
    '  - name: telegram',
    `    url: ${connectorUrl}`,
    `    api_key: "${CONNECTOR_KEY}"`,
    options.connectorConfig ?? '',
    options.connectors ?? '',
  ].join('\n')
}

function storeUrl(store: StandOptions['store'], folder: string): string {
  if (store === 'lmdb') return `lmdb:${join(folder, 'store')}`
  return store === undefined || store === 'memory' ? 'memory:' : store
}
