/** Recorded packets and bodies of the three public v1 connectors. */
import { readFileSync } from 'node:fs'
import { decodePacket, type JsonObject, type Packet } from '../../src/protocol/packet.js'

export const CONNECTORS = ['telegram', 'wechat', 'feishu'] as const
export type Connector = (typeof CONNECTORS)[number]

interface Line {
  readonly case: string
  readonly packet?: JsonObject
  readonly body?: JsonObject
}

function lines(connector: Connector): Line[] {
  const text = readFileSync(new URL(`../fixtures/packets/${connector}.jsonl`, import.meta.url), 'utf8')
  return text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as Line)
}

/** Names of all cases, in the order of the recording. */
export const recordedCases = (connector: Connector): string[] => lines(connector).map((line) => line.case)

export function recordedBody(connector: Connector, name: string): JsonObject {
  const body = lines(connector).find((line) => line.case === name)?.body
  if (body === undefined) throw new Error(`${connector} has no body "${name}"`)
  return body
}

export function recordedPacket(connector: Connector, name: string): Packet {
  const packet = decodePacket(JSON.stringify(lines(connector).find((line) => line.case === name)?.packet))
  if (!packet.ok) throw new Error(`${connector} has no packet "${name}"`)
  return packet.value
}
