/** A connector in a script's hands, and the gateway's legacy links on it, with a clock that the test moves. */
import { connectorLinks, type ConnectorLinks, type ConnectorLinksOptions } from '../../src/legacy/connector-links.js'
import type { Answer, MainLinkEvents, ToolCall } from '../../src/legacy/port.js'
import type { ConnectorCardId, LegacyChannelId, LegacyConnectorId, ToolId } from '../../src/protocol/ids.js'
import type { JsonObject, Packet } from '../../src/protocol/packet.js'
import { ManualClock } from '../helper/manual-clock.js'
import { EventLog } from './event-log.js'
import { FakeConnector, type FakeOptions } from './fake-connector.js'

interface Teardown {
  teardown(end: () => unknown): void
}

/** One line per callback: its name and what it was called with. */
export type Seen =
  | { readonly name: 'up'; readonly connectorId: string | null; readonly protocolVersion: string | null }
  | { readonly name: 'down'; readonly reason: string }
  | { readonly name: 'packet'; readonly packet: Packet }
  | { readonly name: 'undecodable'; readonly code: string; readonly bytes: number }
  | { readonly name: 'dial failed'; readonly reason: string; readonly attempt: number }

export interface Rig extends ConnectorLinks {
  readonly connector: FakeConnector
  readonly clock: ManualClock
  readonly seen: EventLog<Seen>
  /** Waits for the nth callback of that name. */
  readonly next: <N extends Seen['name']>(name: N, nth?: number) => Promise<Extract<Seen, { name: N }>>
  readonly names: () => string[]
}

export const CHANNEL = 'cch_1' as LegacyChannelId

export interface RigOptions extends Partial<Omit<ConnectorLinksOptions, 'endpoint' | 'clock'>> {
  readonly maxFrameBytes?: number
  readonly apiKey?: string | null
}

/** Started links on a running connector; both end with the test. Without tool links unless `toolLinks` says so. */
export async function rig(t: Teardown, fake: FakeOptions = {}, options: RigOptions = {}): Promise<Rig> {
  const connector = await FakeConnector.start(t, fake)
  const clock = new ManualClock()
  const seen = new EventLog<Seen>()
  const { maxFrameBytes = 16 * 1024 * 1024, apiKey = 'key-of-the-connector', ...rest } = options
  const links = connectorLinks({
    endpoint: { baseUrl: connector.url, apiKey, ca: null, maxFrameBytes },
    supportedProfiles: () => ['xagent.im.v1'],
    hello: () => ({ cardId: 'im.example' as ConnectorCardId, connectorId: '' as LegacyConnectorId }),
    toolLinks: 0,
    outboundWaitMs: 20_000,
    random: () => 0,
    clock,
    ...rest,
  }, recorder(seen))
  t.teardown(async () => {
    for (const socket of connector.sockets) socket.terminate()
    await Promise.all([links.main.close('test ends'), links.tools.close('test ends')])
  })
  links.main.start()
  return {
    ...links, connector, clock, seen,
    next: async (name, nth = 1) => (await seen.waitFor((event) => event.name === name, nth)) as never,
    names: () => seen.all.map((event) => event.name),
  }
}

function recorder(seen: EventLog<Seen>): MainLinkEvents {
  return {
    onUp: ({ connectorId, protocolVersion }) => seen.add({ name: 'up', connectorId, protocolVersion }),
    onDown: (reason) => seen.add({ name: 'down', reason }),
    onPacket: (packet) => seen.add({ name: 'packet', packet }),
    onUndecodable: (error, bytes) => seen.add({ name: 'undecodable', code: error.code, bytes }),
    onDialFailed: (reason, attempt) => seen.add({ name: 'dial failed', reason, attempt }),
  }
}

/** One request on the main link and everything that came of it. */
export interface Asked {
  readonly answers: EventLog<Answer>
  readonly late: EventLog<Packet>
  readonly progress: EventLog<JsonObject>
}

export function ask(links: Pick<Rig, 'main'>, type: string, timeoutMs = 10_000): Asked {
  const asked = { answers: new EventLog<Answer>(), late: new EventLog<Packet>(), progress: new EventLog<JsonObject>() }
  links.main.request(type, CHANNEL, {}, timeoutMs, (answer) => asked.answers.add(answer), (packet) => asked.late.add(packet))
  return asked
}

/** One tool call, named by its `tool_call_id`. */
export function invoke(links: Pick<Rig, 'tools'>, toolCallId: string, call: Partial<ToolCall> = {}): Asked {
  const asked = { answers: new EventLog<Answer>(), late: new EventLog<Packet>(), progress: new EventLog<JsonObject>() }
  links.tools.invoke(
    { toolId: 'example_send' as ToolId, channelId: CHANNEL, arguments: { text: 'hi' }, toolCallId, timeoutMs: 60_000, ...call },
    (answer) => asked.answers.add(answer),
    (packet) => asked.late.add(packet),
    (payload) => asked.progress.add(payload),
  )
  return asked
}
