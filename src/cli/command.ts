/** What a command is, and how its arguments are read. Exit codes: 0 ok, 1 failed, 2 usage or configuration (DESIGN §8). */
import { parseArgs, type ParseArgsConfig } from 'node:util'

export const EXIT = { ok: 0, failed: 1, usage: 2 } as const

export interface Command {
  readonly name: string
  readonly summary: string
  readonly help: string
  /** Runs with the arguments after its name; answers the exit code. */
  run(argv: readonly string[]): Promise<number>
}

/** The command line cannot be understood; the message says what would be right. */
export class UsageError extends Error {}

/** Reads flags strictly. Throws UsageError for a flag that is unknown or lacks its value. */
export function readFlags<const T extends NonNullable<ParseArgsConfig['options']>>(argv: readonly string[], options: T) {
  try {
    return parseArgs({ args: [...argv], options: { ...options, help: { type: 'boolean', short: 'h' } }, strict: true, allowPositionals: false }).values
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

/** A line for a person: results to standard output, complaints to standard error. */
export const print = (line: string): void => void process.stdout.write(`${line}\n`)
export const complain = (line: string): void => void process.stderr.write(`${line}\n`)
