/** A route that records what the listener asks of it, and a listener around it. */
import { EventEmitter, once } from 'node:events'
import type { Test } from 'tap'
import { systemClock } from '../../src/ops/clock.js'
import type { ChannelId, RouteName } from '../../src/protocol/ids.js'
import type { Packet } from '../../src/protocol/packet.js'
import type { ListenerEvent } from '../../src/xagent/listener-event.js'
import type { HttpBody, NorthRoute, XagentLink } from '../../src/xagent/port.js'
import { startXagentServer, type XagentServer, type XagentServerOptions } from '../../src/xagent/server.js'

export const KEY = 'invented-key-1'
export const ROUTE = 'telegram' as RouteName

export class FakeRoute extends EventEmitter implements NorthRoute {
  readonly name: RouteName
  readonly packets: Packet[] = []
  readonly links: XagentLink[] = []
  closedLinks = 0
  /** Ids of the route's channels. */
  readonly channels = new Set<string>()
  countsAgainstLimit = true
  cardBody: HttpBody = { status: 200, contentType: 'application/json', body: '{"schema":"xagent.connector/v1"}' }
  skillBody: HttpBody & { headers?: Record<string, string> } = {
    status: 200,
    contentType: 'text/markdown; charset=utf-8',
    body: '# Skill',
    headers: { 'x-xagent-skill-id': 'connector-im-telegram', 'x-xagent-skill-sha256': 'ab12' },
  }
  healthBody: HttpBody = { status: 200, contentType: 'application/json', body: '{"status":"ok"}' }
  onEachPacket: (link: XagentLink, packet: Packet) => void = () => undefined

  constructor(name = ROUTE) {
    super()
    this.name = name
  }

  card = (): HttpBody => this.cardBody
  skill = (): HttpBody & { headers?: Record<string, string> } => this.skillBody
  health = (): HttpBody => this.healthBody

  ownsChannel(id: string): ChannelId | null {
    return this.channels.has(id) ? (id as ChannelId) : null
  }

  onLinkOpened(link: XagentLink): void {
    this.links.push(link)
    this.emit('opened', link)
  }

  onPacket(link: XagentLink, packet: Packet): { countsAgainstLimit: boolean } {
    this.packets.push(packet)
    this.onEachPacket(link, packet)
    this.emit('packet', packet)
    return { countsAgainstLimit: this.countsAgainstLimit }
  }

  onDrain(link: XagentLink): void {
    this.emit('drain', link)
  }

  onLinkClosed(link: XagentLink): void {
    this.closedLinks += 1
    this.emit('closed', link)
  }

  /** The next link that opens. */
  async nextLink(): Promise<XagentLink> {
    const [link] = (await once(this, 'opened')) as [XagentLink]
    return link
  }
}

export interface Listening {
  readonly server: XagentServer
  readonly route: FakeRoute
  readonly events: ListenerEvent[]
  readonly http: string
  readonly ws: string
}

type Changes = Partial<Omit<XagentServerOptions, 'limits'>> & { readonly limits?: Partial<XagentServerOptions['limits']> }

/** Starts a listener on a free port with one route; it ends with the test. */
export async function listening(t: Test, changes: Changes = {}): Promise<Listening> {
  const route = new FakeRoute()
  const events: ListenerEvent[] = []
  let ids = 0
  const { limits, ...others } = changes
  const server = await startXagentServer({
    host: '127.0.0.1',
    port: 0,
    tls: null,
    apiKeys: [KEY],
    clock: systemClock(),
    newId: () => `id-${(ids += 1)}`,
    route: (name) => (name === route.name ? route : undefined),
    files: null,
    observe: (event) => events.push(event),
    ...others,
    limits: { maxFrameBytes: 65_536, maxLinks: 100, linksPerIp: 50, helloTimeoutMs: 60_000, packetsPerSecond: 2000, ...limits },
  })
  t.teardown(() => {
    // With no link left, closing needs no time to pass, whichever clock the test runs on.
    for (const link of route.links) link.close(1001, 'end of test')
    return server.close(1001, 'end of test', 0)
  })
  return { server, route, events, http: `http://127.0.0.1:${server.port}`, ws: `ws://127.0.0.1:${server.port}/telegram/ws` }
}
