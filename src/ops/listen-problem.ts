/** Why a listener cannot start, in words that name the setting: shared by both listeners. */
import { ConfigError } from '../protocol/errors.js'

const REASONS: ReadonlyMap<string, string> = new Map([
  ['EADDRINUSE', 'the port is taken by another process'],
  ['EADDRNOTAVAIL', 'this machine has no such address'],
  ['EACCES', 'not allowed to use this port'],
  ['ENOTFOUND', 'the host name is unknown'],
  ['EAI_AGAIN', 'the host name cannot be resolved'],
])

/** `code` is the system's error code, undefined where there is none. */
export function listenProblem(host: string, port: number, code: string | undefined): ConfigError {
  const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  return new ConfigError([`cannot listen on ${address}: ${REASONS.get(code ?? '') ?? code ?? 'the address could not be bound'}`])
}

export function tlsProblem(tls: { readonly cert: string; readonly key: string }): ConfigError {
  return new ConfigError([`TLS cannot be used with ${tls.cert} and ${tls.key}: both must be PEM files that belong together`])
}
