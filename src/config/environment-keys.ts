/** Keys that the environment gives where the configuration names none (DESIGN §8). */
import { isObject } from '../protocol/packet.js'
import type { Environment } from './secrets.js'

/** The environment variable with a connector's key: `my-chat` → `MY_CHAT_CONNECTOR_KEY`. */
export const connectorKeyName = (name: string): string => `${name.toUpperCase().replaceAll('-', '_')}_CONNECTOR_KEY`

/** The same data with `xagent.api_keys` and each `api_key` that is not said; data of another shape is left to the schema. */
export function withEnvironmentKeys(data: unknown, env: Environment): unknown {
  if (!isObject(data)) return data
  const { xagent = {}, connectors } = data
  return {
    ...data,
    xagent: isObject(xagent) && xagent['api_keys'] === undefined ? { ...xagent, api_keys: [env['XAGENT_API_KEY'] ?? ''] } : xagent,
    ...(Array.isArray(connectors) && { connectors: connectors.map((connector) => withKey(connector, env)) }),
  }
}

function withKey(connector: unknown, env: Environment): unknown {
  if (!isObject(connector) || connector['api_key'] !== undefined || typeof connector['name'] !== 'string') return connector
  return { ...connector, api_key: env[connectorKeyName(connector['name'])] ?? null }
}
