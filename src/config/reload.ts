/** What differs between two configurations, and what of that a running gateway can take over (DESIGN §8 reload). */
import { readFileSync } from 'node:fs'
import type { ConnectorConfig, GatewayConfig } from './schema.js'

/** Sections that were used once, at the start. */
const FIXED = ['listen', 'admin', 'store', 'storeSync', 'redis', 'ownership', 'files', 'limits', 'log'] as const
/** Sections that every route uses: a change of one of them touches all. */
const OF_ROUTES = ['retention', 'delivery', 'turns', 'deltas', 'activity', 'boundary'] as const

export interface ConfigDiff {
  /** Keys whose change needs a restart; not empty = nothing can be taken over. */
  readonly fixed: readonly string[]
  /** Keys outside of connectors that changed and can be taken over. */
  readonly changed: readonly string[]
  /** Names of connectors. */
  readonly added: readonly string[]
  readonly removed: readonly string[]
  /** Those that are to be stopped and started anew. */
  readonly restarted: readonly string[]
}

export function configDiff(before: GatewayConfig, after: GatewayConfig, texts: ConnectorTexts): ConfigDiff {
  const fixed = FIXED.flatMap((section) => leaves(before[section], after[section], keyText(section)))
  const open = (before.xagent.apiKeys.length === 0) !== (after.xagent.apiKeys.length === 0)
  const ofRoutes = OF_ROUTES.flatMap((section) => leaves(before[section], after[section], keyText(section)))
  const names = (config: GatewayConfig): string[] => config.connectors.map(({ name }) => name)
  const [had, has] = [new Set(names(before)), new Set(names(after))]
  const earlier = new Map(before.connectors.map((connector) => [connector.name, connector]))
  const same = (connector: ConnectorConfig): boolean => leaves(earlier.get(connector.name), connector, '').length === 0 && texts.get(connector.name) === textsOf(connector)
  return {
    fixed: [...fixed, ...(open ? ['xagent.api_keys'] : [])],
    changed: [...ofRoutes, ...leaves(before.xagent, after.xagent, 'xagent')],
    added: [...has].filter((name) => !had.has(name)),
    removed: [...had].filter((name) => !has.has(name)),
    restarted: after.connectors.filter((connector) => had.has(connector.name) && (ofRoutes.length > 0 || !same(connector))).map(({ name }) => name),
  }
}

/** What files beside the configuration say, by connector: a changed CA is a change, though its path is the same. */
export type ConnectorTexts = ReadonlyMap<string, string>

export const connectorTexts = ({ connectors }: GatewayConfig): ConnectorTexts => new Map(connectors.map((connector) => [connector.name, textsOf(connector)]))

function textsOf({ ca, skill }: ConnectorConfig): string {
  return JSON.stringify([ca, skill].map((file) => (file === null ? null : readFileSync(file, 'utf8'))))
}

/** Paths of the values that differ, as they are written in the file. Lists are one value. */
function leaves(before: unknown, after: unknown, path: string): string[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return []
  if (!isGroup(before) || !isGroup(after)) return [path]
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return keys.flatMap((key) => leaves(before[key], after[key], path === '' ? keyText(key) : `${path}.${keyText(key)}`))
}

const isGroup = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

/** camelCase inside, snake_case in the file, where durations need no unit in their name. */
const keyText = (key: string): string => key.replace(/Ms$/, '').replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
