/** How a simulated connector answers: the recorded shapes of acks and of both kinds of errors. */
import type { WireError } from '../protocol/errors.js'
import type { JsonObject } from '../protocol/packet.js'
import type { ConnectorSocket } from './connector-socket.js'
import { wirePacket, type WirePacket } from './wire-packet.js'

export class Answers {
  constructor(private readonly now: () => number) {}

  ack(socket: ConnectorSocket, request: WirePacket, payload: JsonObject, channelId = request.connector_channel_id): void {
    socket.send(this.#packet(request, `${request.type}.ack`, channelId, { payload }))
  }

  /** A business failure: the ack with an error and without a payload. */
  ackError(socket: ConnectorSocket, request: WirePacket, error: WireError): void {
    socket.send(this.#packet(request, `${request.type}.ack`, request.connector_channel_id, { error }))
  }

  /** A protocol fault: a packet of `type:"error"`, which carries no `reply_to`. */
  error(socket: ConnectorSocket, request: WirePacket | null, error: WireError): void {
    const { request_id, connector_channel_id } = request ?? {}
    socket.send(wirePacket({ request_id, connector_channel_id, type: 'error', error }, this.now()))
  }

  pong(socket: ConnectorSocket, { request_id, connector_channel_id }: WirePacket): void {
    socket.send(wirePacket({ request_id, connector_channel_id, type: 'pong' }, this.now()))
  }

  #packet(request: WirePacket, type: string, channelId: string | undefined, rest: Pick<WirePacket, 'payload' | 'error'>): WirePacket {
    const { request_id, packet_id: reply_to } = request
    return wirePacket({ request_id, reply_to, connector_channel_id: channelId, type, ...rest }, this.now())
  }
}
