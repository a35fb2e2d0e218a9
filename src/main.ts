#!/usr/bin/env node
/** argv, commands, exit codes. */
import { EXIT, UsageError, complain, print, type Command } from './cli/command.js'
import { ConfigError } from './protocol/errors.js'
import { scrub } from './protocol/redact.js'

/** Loaded when asked for: `check-config` needs neither store nor sockets. */
const COMMANDS: ReadonlyMap<string, { readonly summary: string; readonly load: () => Promise<Command> }> = new Map([
  ['serve', { summary: 'run the gateway (default)', load: async () => (await import('./cli/serve.js')).serve }],
  ['check-config', { summary: 'check a configuration file', load: async () => (await import('./cli/check-config.js')).checkConfig }],
  ['doctor', { summary: 'check a setup, and say what to do', load: async () => (await import('./cli/doctor.js')).doctor }],
  ['translate', { summary: 'packets on standard input to packets on standard output, offline', load: async () => (await import('./cli/translate.js')).translate }],
  ['demo', { summary: 'a gateway between a simulated connector and a simulated xAgent', load: async () => (await import('./cli/demo.js')).demo }],
])
/** Named in the documentation as coming; asking for one says so. */
const LATER: ReadonlyMap<string, string> = new Map([
  ['dead-letters', 'list, show, replay and purge what could not be delivered'],
  ['why', 'what became of one message'],
  ['conformance', 'test a Connector Server'],
])

const USAGE = `Usage: xagent-im-gateway [command] [flags]

${[...COMMANDS].map(([name, { summary }]) => `  ${name.padEnd(14)}${summary}`).join('\n')}

<command> --help explains a command.`

async function main(argv: readonly string[]): Promise<number> {
  const [first = 'serve'] = argv
  if (['--help', '-h', 'help'].includes(first)) {
    print(USAGE)
    return EXIT.ok
  }
  const named = !first.startsWith('-')
  const command = COMMANDS.get(named ? first : 'serve')
  if (command !== undefined) return run(await command.load(), named ? argv.slice(1) : argv)
  const later = LATER.get(first)
  if (later === undefined) throw new UsageError(`there is no command "${first}"`)
  if (!argv.includes('--help') && !argv.includes('-h')) throw new UsageError(`${first} is not yet in this version`)
  print(`${first}: ${later}. Not yet in this version.`)
  return EXIT.ok
}

/** Whoever mistakes a flag of a command is shown the flags that it has. */
async function run(command: Command, argv: readonly string[]): Promise<number> {
  try {
    return await command.run(argv)
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(error.message, { cause: command.help })
    throw error
  }
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  if (error instanceof ConfigError) {
    for (const problem of error.problems) complain(problem)
    process.exitCode = EXIT.usage
  } else if (error instanceof UsageError) {
    complain(`${error.message}\n\n${typeof error.cause === 'string' ? error.cause : USAGE}`)
    process.exitCode = EXIT.usage
  } else {
    complain(error instanceof Error ? `${error.name}: ${scrub(error.message)}` : scrub(String(error)))
    process.exitCode = EXIT.failed
  }
}
