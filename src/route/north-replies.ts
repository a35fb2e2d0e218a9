/** Packets that answer xAgent: the same request_id, the answered packet in reply_to, the channel id that the link uses. */
import type { WireError } from '../protocol/errors.js'
import type { PacketId } from '../protocol/ids.js'
import type { JsonObject, Packet } from '../protocol/packet.js'
import type { RouteContext } from './context.js'
import type { NorthLink } from './north-link.js'

export class NorthReplies {
  constructor(private readonly context: Pick<RouteContext, 'newId' | 'now' | 'log'>) {}

  /** Answers a packet. An `error` beside an ack's payload is a business failure (PROTOCOL "Envelope"). */
  reply(link: NorthLink, packet: Packet, type: string, payload: JsonObject, error?: WireError): void {
    link.socket.send({
      packetId: this.context.newId('pkt_') as PacketId,
      ...(packet.requestId !== undefined && { requestId: packet.requestId }),
      replyTo: packet.packetId,
      ...(packet.channelId !== undefined && { channelId: packet.channelId }),
      type, time: this.context.now(), payload,
      ...(error !== undefined && { error }),
    })
  }

  /** Answers with a packet of type `error`: protocol, identity, routing and hello-order faults. */
  refuse(link: NorthLink, packet: Packet, error: WireError): void {
    if (link.hello === null) this.context.log.warn({ link: link.socket.id, code: error.code }, 'a packet was refused before hello')
    this.reply(link, packet, 'error', {}, error)
  }
}
