/** A configuration file, or no file at all, → a checked configuration (DESIGN §8). */
import { accessSync, constants, readFileSync } from 'node:fs'
import { ConfigError } from '../protocol/errors.js'
import { notYetKeys } from './not-yet.js'
import { configSchema, type GatewayConfig } from './schema.js'
import { resolveSecrets } from './secrets.js'
import { suggestion } from './suggest.js'
import { describeIssues, pathText, readYaml, type Yaml } from './yaml-problems.js'

export type Environment = Readonly<Record<string, string | undefined>>

export interface LoadedConfig {
  readonly config: GatewayConfig
  /** What a person should know though nothing is wrong. */
  readonly notes: readonly string[]
  /** Keys that the file sets and that this version does not use yet. */
  readonly notYet: readonly string[]
}

/** Reads and checks a file. Throws ConfigError with every problem, each a complete line. */
export function loadConfigFile(file: string, env: Environment): LoadedConfig {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError([`${file}: cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'}); name a file with --config, or use --connector <name>=<url>`])
  }
  return parseConfig(file, text, env)
}

/** Checks the text of a configuration; `file` is its name in messages. */
export function parseConfig(file: string, text: string, env: Environment): LoadedConfig {
  const yaml = readYaml(file, text)
  if (yaml.problems.length > 0) throw new ConfigError(yaml.problems)
  const problems: string[] = []
  const say = (path: readonly PropertyKey[], problem: string): void => {
    problems.push(`${file}:${yaml.lineOf(path)}: ${pathText(path)}: ${problem}`)
  }
  const data = resolveSecrets(yaml.data ?? {}, { env, onProblem: say })
  const parsed = configSchema.safeParse(data, { reportInput: true })
  if (!parsed.success) problems.push(...describeIssues(file, yaml, parsed.error.issues).map((line) => line + suggestion(line)))
  else crossCheck(parsed.data, say)
  if (problems.length > 0 || !parsed.success) throw new ConfigError(problems)
  const { config, notes } = adjusted(parsed.data)
  return { config, notes, notYet: notYetKeys(yaml.data, config).map((path) => `${file}:${yaml.lineOf(path)}: ${pathText(path)}: not yet in this version`) }
}

/**
 * No file at all: connectors from the command line, keys from the environment. Without an xAgent key the listener stays on
 * loopback, where none is needed.
 */
export function configFromArguments(connectors: readonly { name: string; url: string }[], env: Environment): LoadedConfig {
  const key = env['XAGENT_API_KEY'] ?? ''
  const listen = key === '' ? { listen: { host: '127.0.0.1' } } : { xagent: { api_keys: [key] } }
  const data = {
    ...listen,
    connectors: connectors.map(({ name, url }) => ({ name, url, api_key: env[connectorKeyName(name)] ?? null })),
  }
  const parsed = configSchema.safeParse(data)
  const noYaml: Yaml = { data, problems: [], lineOf: () => 1 }
  if (!parsed.success) throw new ConfigError(describeIssues('--connector', noYaml, parsed.error.issues))
  const problems: string[] = []
  crossCheck(parsed.data, (path, problem) => problems.push(`--connector: ${pathText(path)}: ${problem}`))
  if (problems.length > 0) throw new ConfigError(problems)
  const { config, notes } = adjusted(parsed.data)
  return { config, notes: key === '' ? [...notes, 'XAGENT_API_KEY is not set: listening on 127.0.0.1 only'] : notes, notYet: [] }
}

/** The environment variable with a connector's key: `my-chat` → `MY_CHAT_CONNECTOR_KEY`. */
export const connectorKeyName = (name: string): string => `${name.toUpperCase().replace(/-/g, '_')}_CONNECTOR_KEY`

/** What `serve` cannot do honestly though the file is right. */
export function serveProblems(config: GatewayConfig): string[] {
  const problems: string[] = []
  if (/^rediss?:/.test(config.store)) problems.push('store: redis:// is not yet in this version; use lmdb:<folder> or memory:')
  if (config.boundary.mode === 'observe') problems.push('boundary.mode: observe is not yet in this version; use enforce')
  return problems
}

function crossCheck(config: GatewayConfig, say: (path: readonly PropertyKey[], problem: string) => void): void {
  if (config.xagent.apiKeys.length === 0 && !config.xagent.insecure && !isLoopback(config.listen.host)) {
    say(['xagent', 'api_keys'], `no key, and listen.host ${config.listen.host} is not loopback; set a key, listen on 127.0.0.1, or set xagent.insecure: true`)
  }
  if (!config.admin.insecure && !isLoopback(config.admin.host)) {
    for (const [key, token] of [['read_token', config.admin.readToken], ['write_token', config.admin.writeToken]] as const) {
      if (token === null) say(['admin', key], `no token, and admin.host ${config.admin.host} is not loopback; set one, listen on 127.0.0.1, or set admin.insecure: true`)
    }
  }
  if (!/^(memory:$|lmdb:.|rediss?:\/\/)/.test(config.store)) say(['store'], 'must be memory:, lmdb:<folder> or redis://…')
  if (config.delivery.backoff.initialMs > config.delivery.backoff.maxMs) say(['delivery', 'backoff', 'initial'], 'must not be longer than delivery.backoff.max')
  const seen = new Map<string, number>()
  config.connectors.forEach((connector, index) => {
    const first = seen.get(connector.name)
    if (first !== undefined) say(['connectors', index, 'name'], `"${connector.name}" is the name of connectors[${first}] already; names must differ`)
    seen.set(connector.name, first ?? index)
    for (const key of ['ca', 'skill'] as const) readable(connector[key], ['connectors', index, key], say)
  })
  for (const where of ['listen', 'admin'] as const) {
    readable(config[where].tls?.cert ?? null, [where, 'tls', 'cert'], say)
    readable(config[where].tls?.key ?? null, [where, 'tls', 'key'], say)
  }
}

function readable(file: string | null, path: readonly PropertyKey[], say: (path: readonly PropertyKey[], problem: string) => void): void {
  if (file === null) return
  try {
    accessSync(file, constants.R_OK)
  } catch {
    say(path, `the file ${file} cannot be read; it must exist and be readable`)
  }
}

/** v1 §7.2: what is expired is noticed at least twice per ttl. */
function adjusted(config: GatewayConfig): { config: GatewayConfig; notes: string[] } {
  const half = Math.floor(config.retention.ttlMs / 2)
  if (config.retention.sweepIntervalMs <= half) return { config: frozen(config), notes: [] }
  const notes = [`retention.sweep_interval is lowered to half of retention.ttl: ${half} ms`]
  return { config: frozen({ ...config, retention: { ...config.retention, sweepIntervalMs: half } }), notes }
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)
}

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    Object.values(value).forEach(frozen)
  }
  return value
}
