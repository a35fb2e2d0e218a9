/** Joins the main link and the tool links of one route: the pool lives by the main link's ups and downs. */
import type { Clock } from '../ops/clock.js'
import type { HelloIdentity, LinkOptions } from './link.js'
import { ReconnectingMainLink } from './main-link.js'
import type { MainLink, MainLinkEvents, ToolLinks } from './port.js'
import type { LegacyEndpoint } from './socket.js'
import { LEGACY_TIMING, type LegacyTiming } from './timing.js'
import { ToolLinkPool } from './tool-links.js'

export interface ConnectorLinksOptions {
  readonly endpoint: LegacyEndpoint
  /** What hello offers (`supported_profiles`), asked at every dial. */
  readonly supportedProfiles: () => readonly string[]
  /** Asked at every dial; null = not known yet. Every link sends the same stored connector id. */
  readonly hello: () => HelloIdentity | null
  /** `tool_links` of the connector's configuration. */
  readonly toolLinks: number
  /** `delivery.outbound_wait`. */
  readonly outboundWaitMs: number
  readonly clock: Clock
  /** In [0, 1). */
  readonly random: () => number
  readonly timing?: Partial<LegacyTiming>
}

export interface ConnectorLinks {
  readonly main: MainLink
  readonly tools: ToolLinks
  /** The connector serves another profile now: every link says hello anew. */
  readonly rehello: (reason: string) => void
}

/** Nothing is dialled before `main.start()`. `events` also gets what is unexpected on a tool link. */
export function connectorLinks(options: ConnectorLinksOptions, events: MainLinkEvents): ConnectorLinks {
  const { endpoint, supportedProfiles, clock, hello, random } = options
  const link: LinkOptions = { endpoint, supportedProfiles, clock, timing: { ...LEGACY_TIMING, ...options.timing } }
  const main = new ReconnectingMainLink({ link, hello, random }, {
    ...events,
    onUp: (ack) => {
      // First the route, which stores the connector's id, then the pool, whose links repeat it.
      events.onUp(ack)
      tools.mainUp()
    },
    onDown: (reason) => {
      tools.mainDown()
      events.onDown(reason)
    },
    onPacket: (packet) => {
      if (!tools.mainPacket(packet)) events.onPacket(packet)
    },
  })
  const tools = new ToolLinkPool({
    link, hello, random, max: options.toolLinks, waitMs: options.outboundWaitMs,
    main: (...request) => main.request(...request),
    onPacket: events.onPacket,
    onUndecodable: events.onUndecodable,
  })
  const rehello = (reason: string): void => {
    tools.rehello(reason)
    main.rehello(reason)
  }
  return { main, tools, rehello }
}
