/** A configuration file, or no file at all, → a checked configuration (DESIGN §8). */
import { readFileSync } from 'node:fs'
import { ConfigError } from '../protocol/errors.js'
import { crossProblems } from './cross-checks.js'
import { withEnvironmentKeys } from './environment-keys.js'
import { notYetKeys } from './not-yet.js'
import { configSchema, type GatewayConfig } from './schema.js'
import { resolveSecrets, type Environment } from './secrets.js'
import { pathText, problemLines, problemsOf, readYaml, type KeyPath, type Problem } from './yaml-problems.js'

export { isLoopback } from './cross-checks.js'
export { connectorKeyName } from './environment-keys.js'
export type { Environment } from './secrets.js'

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
  const unresolved: Problem[] = []
  const data = resolveSecrets(yaml.data ?? {}, { env, onProblem: (path, problem) => unresolved.push({ path, text: problem }) })
  const { config, problems } = checked(withEnvironmentKeys(data, env), yaml.data ?? {}, unresolved)
  if (config === null || problems.length > 0) throw new ConfigError(problemLines(file, yaml, problems))
  const notYet = notYetKeys(yaml.data, config).map((path) => `${file}:${yaml.lineOf(path)}: ${pathText(path)}: not yet in this version`)
  return { ...adjusted(config), notYet }
}

/**
 * No file at all: connectors from the command line, keys from the environment. Without an xAgent key the listener stays on
 * loopback, where none is needed.
 */
export function configFromArguments(connectors: readonly { name: string; url: string }[], env: Environment): LoadedConfig {
  const keyless = (env['XAGENT_API_KEY'] ?? '') === ''
  const data = withEnvironmentKeys({ ...(keyless && { listen: { host: '127.0.0.1' } }), connectors: connectors.map(({ name, url }) => ({ name, url })) }, env)
  const { config, problems } = checked(data, data, [])
  if (config === null || problems.length > 0) throw new ConfigError(problems.map(({ path, text }) => `--connector: ${pathText(path)}: ${text}`))
  const { notes, ...rest } = adjusted(config)
  return { ...rest, notes: keyless ? [...notes, 'XAGENT_API_KEY is not set: listening on 127.0.0.1 only'] : notes, notYet: [] }
}

/**
 * All problems at once. Where single values are wrong, rules over several keys are looked at without those values, and what
 * they say is kept only for places that nothing else was said about.
 */
function checked(data: unknown, written: unknown, unresolved: readonly Problem[]): { config: GatewayConfig | null; problems: Problem[] } {
  const parsed = configSchema.safeParse(data)
  const issues = parsed.success ? [] : problemsOf(configSchema, written, parsed.error.issues)
  const problems = [...unresolved, ...issues.filter(({ path }) => !unresolved.some((said) => pathText(said.path) === pathText(path)))]
  const usable = parsed.success ? parsed : configSchema.safeParse(issues.reduce((rest, { path }) => without(rest, path), data))
  const crossed = usable.success ? crossProblems(usable.data).filter(({ path }) => !problems.some((said) => touches(said.path, path))) : []
  return { config: parsed.success ? parsed.data : null, problems: [...problems, ...crossed] }
}

/** Whether one path is the other or leads to it; all of a listener is one matter, so its address and its keys touch. */
function touches(a: KeyPath, b: KeyPath): boolean {
  if (b[0] === 'xagent' && pathText(a) === 'listen.host') return true
  return a.slice(0, b.length).every((key, at) => key === b[at])
}

/** The data without the key at a path; items of lists stay, so that the places of the others do. */
function without(data: unknown, [first, ...rest]: KeyPath): unknown {
  if (typeof data !== 'object' || data === null || first === undefined) return data
  if (Array.isArray(data)) return data.map((item, at) => (at === first ? without(item, rest) : item))
  return Object.fromEntries(Object.entries(data).flatMap(([key, item]) => (key !== first ? [[key, item]] : rest.length === 0 ? [] : [[key, without(item, rest)]])))
}

/** v1 §7.2: what is expired is noticed at least twice per ttl. */
function adjusted(config: GatewayConfig): { config: GatewayConfig; notes: string[] } {
  const half = Math.floor(config.retention.ttlMs / 2)
  if (config.retention.sweepIntervalMs <= half) return { config: frozen(config), notes: [] }
  const notes = [`retention.sweep_interval is lowered to half of retention.ttl: ${half} ms`]
  return { config: frozen({ ...config, retention: { ...config.retention, sweepIntervalMs: half } }), notes }
}

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    Object.values(value).forEach(frozen)
  }
  return value
}
