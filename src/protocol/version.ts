/**
 * Version and schema names of both sides, in one table: when xAgent moves on, this file and the catalog are what changes
 * (PROTOCOL "What comes after 3.0").
 */
export const PACKET_SCHEMA = 'xagent.connector.packet/v1'
export const CARD_SCHEMA = 'xagent.connector/v1'
export const DESCRIPTOR_SCHEMA = 'xagent.connection/v2'
/** The Descriptor schema that 1.0 connectors send: one `connection.profile` string. */
export const LEGACY_DESCRIPTOR_SCHEMA = 'xagent.connection/v1'
/** WebSocket subprotocol of the data plane, on both sides. */
export const SUBPROTOCOL = 'xagent.connector.packet.v1'
/** What the gateway offers xAgent, and what it says to legacy connectors (1.0 servers ignore it). */
export const PROTOCOL_VERSION = '3.0'

/**
 * Compares dotted numeric versions by number, so that 3.10 is newer than 3.9. Missing parts count as 0.
 * Returns null when either is not a dotted number.
 */
export function compareVersions(a: string, b: string): -1 | 0 | 1 | null {
  const left = parts(a)
  const right = parts(b)
  if (left === null || right === null) return null
  for (let i = 0; i < Math.max(left.length, right.length); i += 1) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0)
    if (difference !== 0) return difference < 0 ? -1 : 1
  }
  return 0
}

/** Whether a hello with this version is admitted: 3.0 and newer are, a missing or malformed one is not (DESIGN §6). */
export function isAdmittedVersion(version: string | undefined): boolean {
  if (version === undefined) return false
  const order = compareVersions(version, PROTOCOL_VERSION)
  return order !== null && order >= 0
}

function parts(version: string): number[] | null {
  return /^\d{1,6}(\.\d{1,6}){0,3}$/.test(version) ? version.split('.').map(Number) : null
}
