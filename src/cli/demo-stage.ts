/** The three parties of the demo in one process, on free loopback ports, with a store in a temporary folder. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseConfig } from '../config/load.js'
import { loadCatalog, loadPresets } from '../config/package-files.js'
import { startGateway, type Gateway } from '../gateway.js'
import { buildInfo } from '../ops/build-info.js'
import { createLogger } from '../ops/logger.js'
import { startSimConnector, type SimConnector } from '../sim/connector.js'
import { SimXagent } from '../sim/xagent.js'
import type { Screen } from './demo-screen.js'

/** Keys of the demo alone: the simulated parties check them, nothing else does. */
export const XAGENT_KEY = 'demo-xagent-key'
const CONNECTOR_KEY = 'demo-connector-key'

export interface Stage {
  readonly connector: SimConnector
  readonly xagent: SimXagent
  /** What xAgent's administrator would enter. */
  readonly baseUrl: string
  readonly metricsUrl: string
  /** Ends all three and removes the folder. */
  end(): Promise<void>
}

/** Starts connector and gateway, and an xAgent that has not dialled yet. Whatever was started is ended when the rest fails. */
export async function setStage(screen: Screen): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'xagent-im-gateway-demo-'))
  const endings: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })]
  const end = async (): Promise<void> => {
    for (const ending of endings.splice(0).reverse()) await ending()
  }
  try {
    const connector = await startSimConnector({ kind: 'telegram', apiKey: CONNECTOR_KEY })
    endings.push(() => connector.stop())
    screen.says('connector', `a Telegram connector that only speaks xagent.im.v1 listens on ${connector.url}`)
    const gateway = await gatewayFor(connector.url, join(folder, 'store'), screen)
    endings.push(() => gateway.stop('the demo is over'))
    await connector.waitFor('hello', ({ accepted }) => accepted)
    const baseUrl = `http://127.0.0.1:${gateway.ports.xagent}/telegram`
    const xagent = new SimXagent({ baseUrl, apiKey: XAGENT_KEY, profiles: ['xagent.im.v2'] })
    endings.push(() => xagent.close())
    return { connector, xagent, baseUrl, metricsUrl: `http://127.0.0.1:${gateway.ports.admin}/metrics`, end }
  } catch (error) {
    await end()
    throw error
  }
}

function gatewayFor(connectorUrl: string, storeFolder: string, screen: Screen): Promise<Gateway> {
  // A short ack_timeout, so that a redelivery does not take half a minute to see.
  const { config } = parseConfig('demo', `
listen: { host: 127.0.0.1, port: 0 }
admin: { host: 127.0.0.1, port: 0 }
xagent: { api_keys: [${XAGENT_KEY}] }
store: ${JSON.stringify(`lmdb:${storeFolder}`)}
files: { dir: ${JSON.stringify(`${storeFolder}-files`)} }
delivery: { ack_timeout: 1s, backoff: { initial: 200ms, max: 1s }, drain_timeout: 2s }
connectors:
  - { name: telegram, url: ${JSON.stringify(connectorUrl)}, api_key: ${CONNECTOR_KEY} }
`, {})
  const logger = createLogger({
    level: 'info', pretty: false, secrets: [XAGENT_KEY, CONNECTOR_KEY], destination: { write: (line) => showLogLine(screen, line) },
  })
  return startGateway({ config, presets: loadPresets(), catalog: loadCatalog(), build: buildInfo({}), logger })
}

const SHOWN = ['messageId', 'attempts', 'reason', 'code', 'ageMs'] as const

/** The gateway's own log lines are its part of the conversation. */
function showLogLine(screen: Screen, line: string): void {
  const entry = JSON.parse(line) as Record<string, unknown>
  const facts = SHOWN.filter((name) => entry[name] !== undefined).map((name) => `${name} ${factText(name, entry[name])}`)
  screen.says('gateway', `${String(entry['msg'])}${facts.length === 0 ? '' : ` (${facts.join(', ')})`}`)
}

const factText = (name: string, value: unknown): string => (name === 'messageId' ? shortId(String(value)) : String(value))

/** Long ids are cut: a person tells them apart by their beginning. */
export const shortId = (id: string): string => (id.length > 16 ? `${id.slice(0, 12)}…` : id)
