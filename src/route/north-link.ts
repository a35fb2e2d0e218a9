/** The xAgent links of a route: who said hello with what, and which channels each has open. */
import type { Hello } from '../core/handshake.js'
import type { ChannelId, LinkId } from '../protocol/ids.js'
import type { Negotiated } from '../protocol/catalog.js'
import type { XagentLink } from '../xagent/port.js'
import type { Entry } from './channel-table.js'

export interface NorthLink {
  readonly socket: XagentLink
  hello: Hello | null
  /** What may cross on this link's channels: Card ∩ hello, as the Descriptors state it (DESIGN §6). */
  negotiated: Negotiated | null
  /** By the id that this link uses. */
  readonly channels: Map<ChannelId, Entry>
}

export class NorthLinks {
  readonly #links = new Map<LinkId, NorthLink>()

  add(socket: XagentLink): NorthLink {
    const link: NorthLink = { socket, hello: null, negotiated: null, channels: new Map() }
    this.#links.set(socket.id, link)
    return link
  }

  get(id: LinkId): NorthLink | undefined {
    return this.#links.get(id)
  }

  delete(id: LinkId): void {
    this.#links.delete(id)
  }

  [Symbol.iterator](): IterableIterator<NorthLink> {
    return this.#links.values()
  }

  /** The link that has a channel, and the id it uses. */
  holder(entry: Entry): { link: NorthLink; as: ChannelId } | null {
    const held = entry.channel.link
    const link = held === null ? undefined : this.#links.get(held.id)
    return held === null || link === undefined ? null : { link, as: held.as }
  }

  /** Takes a channel from every link but one: the latest `channel.open` has it (DESIGN §3 Ids). */
  take(entry: Entry, by: NorthLink | null): void {
    for (const link of this.#links.values()) {
      if (link === by) continue
      for (const [as, held] of link.channels) if (held === entry) link.channels.delete(as)
    }
  }
}
