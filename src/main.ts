#!/usr/bin/env node
/** argv, commands, exit codes. */
import { checkConfig } from './cli/check-config.js'
import { EXIT, UsageError, complain, print, type Command } from './cli/command.js'
import { demo } from './cli/demo.js'
import { serve } from './cli/serve.js'
import { ConfigError } from './protocol/errors.js'

const COMMANDS: readonly Command[] = [serve, checkConfig, demo]
/** Named in the documentation as coming; asking for one says so. */
const LATER: readonly string[] = ['doctor', 'translate', 'dead-letters', 'why', 'conformance']

const USAGE = `Usage: xagent-im-gateway [command] [flags]

${COMMANDS.map(({ name, summary }) => `  ${name.padEnd(14)}${summary}`).join('\n')}

<command> --help explains a command.`

async function main(argv: readonly string[]): Promise<number> {
  const [first] = argv
  if (first === '--help' || first === '-h' || first === 'help') {
    print(USAGE)
    return EXIT.ok
  }
  const named = first !== undefined && !first.startsWith('-')
  const command = named ? COMMANDS.find(({ name }) => name === first) : serve
  if (command !== undefined) return command.run(named ? argv.slice(1) : argv)
  throw new UsageError(LATER.includes(first ?? '') ? `${first} is not yet in this version` : `there is no command "${first}"`)
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  if (error instanceof ConfigError) {
    for (const problem of error.problems) complain(problem)
    process.exitCode = EXIT.usage
  } else if (error instanceof UsageError) {
    complain(`${error.message}\n\n${USAGE}`)
    process.exitCode = EXIT.usage
  } else {
    complain(error instanceof Error ? `${error.name}: ${error.message}` : String(error))
    process.exitCode = EXIT.failed
  }
}
