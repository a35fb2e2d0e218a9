/** A configuration from its text, and the problems of one that is refused. */
import { parseConfig } from '../../src/config/load.js'
import { ConfigError } from '../../src/protocol/errors.js'

export const ENV = { XAGENT_API_KEY: 'xagent-key-1', TELEGRAM_CONNECTOR_KEY: 'connector-key-1' }
export const CONNECTORS = 'connectors:\n  - { name: telegram, url: "http://127.0.0.1:19091" }\n'

export const parsed = (text: string, env: Readonly<Record<string, string>> = ENV) => parseConfig('gw.yaml', text, env)
export const configOf = (text: string, env?: Readonly<Record<string, string>>) => parsed(text, env).config

/** Every problem of a text; none when it is taken. */
export function problems(text: string, env?: Readonly<Record<string, string>>): readonly string[] {
  try {
    parsed(text, env)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}
