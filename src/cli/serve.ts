/** `serve`: run the gateway until it is told to stop. */
import { existsSync } from 'node:fs'
import { configFromArguments, loadConfigFile, type LoadedConfig } from '../config/load.js'
import { DEFAULT_CONFIG_FILE, loadCatalog, loadPresets } from '../config/package-files.js'
import type { GatewayConfig } from '../config/schema.js'
import type { Gateway } from '../gateway.js'
import { buildInfo } from '../ops/build-info.js'
import { ConfigError } from '../protocol/errors.js'
import { scrub } from '../protocol/redact.js'
import { EXIT, UsageError, complain, print, readFlags, type Command } from './command.js'

const HELP = `Usage: serve [--config <file>] [--connector <name>=<url> …]

Runs the gateway (the default command).

  --config <file>            configuration; default ${DEFAULT_CONFIG_FILE} when that exists and no connector is given
  --connector <name>=<url>   no file at all: front this connector; repeatable. Keys come from the environment:
                             XAGENT_API_KEY for xAgent, <NAME>_CONNECTOR_KEY for a connector (upper case, - as _)
  --help                     this text

SIGHUP reads the configuration again: connectors that it adds, removes or changes are started and stopped, links of all others stay.
SIGTERM and SIGINT drain and stop; a second one stops at once.`

export const serve: Command = {
  name: 'serve',
  summary: 'run the gateway (default)',
  help: HELP,
  async run(argv) {
    const flags = readFlags(argv, { config: { type: 'string' }, connector: { type: 'string', multiple: true }, 'take-over': { type: 'boolean' } })
    if (flags.help === true) return say(HELP)
    if (flags['take-over'] === true) throw new UsageError('--take-over is not yet in this version')
    const { config, notes, notYet } = loadFrom(flags.config, flags.connector ?? [])
    for (const line of notes) complain(line)
    if (notYet.length > 0) complain(`${notYet.length} keys of the configuration are not yet used in this version; check-config names them`)
    // Only here: the other commands must work where the native modules do not load.
    const { startGateway } = await import('../gateway.js')
    const gateway = await startGateway({ config, presets: loadPresets(), catalog: loadCatalog(), build: buildInfo(process.env) })
    const reload = (): Promise<void> => reloaded(gateway, () => loadFrom(flags.config, flags.connector ?? []).config)
    return untilSignal(gateway, () => void reload())
  },
}

/** The configuration that the flags of `serve` and `check-config` name. */
export function loadFrom(file: string | undefined, connectors: readonly string[]): LoadedConfig {
  if (file !== undefined && connectors.length > 0) throw new UsageError('give either --config or --connector, not both')
  if (connectors.length > 0) return configFromArguments(connectors.map(readConnector), process.env)
  if (file === undefined && !existsSync(DEFAULT_CONFIG_FILE)) {
    throw new UsageError(`there is no ${DEFAULT_CONFIG_FILE} here; name a file with --config, or a connector with --connector <name>=<url>`)
  }
  return loadConfigFile(file ?? DEFAULT_CONFIG_FILE, process.env)
}

function readConnector(text: string): { name: string; url: string } {
  const at = text.indexOf('=')
  if (at < 1) throw new UsageError('--connector: must be <name>=<url>, like telegram=http://127.0.0.1:19091')
  return { name: text.slice(0, at), url: text.slice(at + 1) }
}

/** A file that is wrong, or changes what needs a restart, changes nothing, and says why. */
async function reloaded(gateway: Gateway, load: () => GatewayConfig): Promise<void> {
  try {
    const { changed, added, removed, restarted } = await gateway.reload(load())
    const parts = [['changed', changed], ['added', added], ['removed', removed], ['started anew', restarted]] as const
    complain(`reloaded: ${parts.filter(([, names]) => names.length > 0).map(([what, names]) => `${what} ${names.join(', ')}`).join('; ') || 'nothing has changed'}`)
  } catch (error) {
    if (!(error instanceof ConfigError)) return complain(`reloaded in part: ${error instanceof Error ? scrub(error.message) : 'something failed'}; the log says more, a restart helps`)
    for (const problem of error.problems) complain(problem)
    complain('not reloaded: everything is as it was')
  }
}

/** Reloads at SIGHUP. Stops at the first signal to end; a second one gives up waiting. */
async function untilSignal(gateway: Gateway, reload: () => void): Promise<number> {
  process.on('SIGHUP', reload)
  const signal = await new Promise<string>((resolve) => {
    let told = false
    for (const name of ['SIGTERM', 'SIGINT'] as const) {
      process.on(name, () => {
        if (told) process.exit(EXIT.failed)
        told = true
        resolve(name)
      })
    }
  })
  await gateway.stop(signal)
  return EXIT.ok
}

function say(text: string): number {
  print(text)
  return EXIT.ok
}
