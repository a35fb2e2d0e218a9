/** Puts relayed packets on the wire: a new packet id, the receiving side's channel id, and who is told how it went. */
import type { MainLink } from '../legacy/port.js'
import type { ChannelId, LinkId, PacketId } from '../protocol/ids.js'
import type { Packet } from '../protocol/packet.js'
import type { Entry } from './channel-table.js'
import type { RouteContext } from './context.js'
import type { NorthLinks } from './north-link.js'
import type { Relayed } from './relayed-packets.js'

/** What of a packet is carried over; everything else is made anew. */
export type Carried = Pick<Packet, 'type' | 'payload'> & Pick<Partial<Packet>, 'replyTo' | 'requestId' | 'error'>

export class RelayWire {
  constructor(
    private readonly context: Pick<RouteContext, 'newId' | 'now'>,
    private readonly links: NorthLinks,
    private readonly main: Pick<MainLink, 'up' | 'send'>,
  ) {}

  /** The id it was sent as; null = certainly not sent: the connector is away, or has the channel not open. */
  toConnector(entry: Entry, carried: Carried): PacketId | null {
    if (!this.main.up || !entry.channel.legacyOpen) return null
    const packet = this.#packet(carried, entry.legacyId)
    return this.main.send(packet) ? packet.packetId : null
  }

  /** To the link that has the channel. `closed` = there is none. */
  toHolder(entry: Entry, carried: Carried): { readonly sent: 'queued' | 'full' | 'too_large' | 'closed'; readonly packetId: PacketId } {
    const holder = this.links.holder(entry)
    const packet = this.#packet(carried, holder?.as ?? entry.id)
    return { sent: holder?.link.socket.send(packet) ?? 'closed', packetId: packet.packetId }
  }

  /** Answers a packet of xAgent's on the link that it came on; a link that is gone has lost its answer, as any link would. */
  answerXagent({ link, as }: { readonly link: LinkId; readonly as: ChannelId }, carried: Carried): void {
    this.links.get(link)?.socket.send(this.#packet(carried, as))
  }

  /** Answers a packet that was relayed, on the side that it came from. */
  answer({ entry, packetId, requestId, from }: Relayed, carried: Omit<Carried, 'replyTo' | 'requestId'>): void {
    const answer: Carried = { ...carried, replyTo: packetId, ...(requestId !== undefined && { requestId }) }
    if (from === null) this.toConnector(entry, answer)
    else this.answerXagent(from, answer)
  }

  #packet({ type, payload, replyTo, requestId, error }: Carried, channelId: string): Packet {
    return {
      packetId: this.context.newId('pkt_') as PacketId, channelId, type, time: this.context.now(), payload,
      ...(replyTo !== undefined && { replyTo }), ...(requestId !== undefined && { requestId }), ...(error !== undefined && { error }),
    }
  }
}
