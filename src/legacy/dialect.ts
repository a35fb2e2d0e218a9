/**
 * Reads what connectors of both dialects answer, 1.0 and 3.0 with `xagent.im.v1` (docs/legacy.md "Dialects"): lenient exactly
 * where real connectors deviate, and every deviation is named so that it can be counted. Pure.
 */
import { err, ok, wireError, type Result, type WireError } from '../protocol/errors.js'
import type { ConnectorCardId, LegacyChannelId, LegacyConnectorId } from '../protocol/ids.js'
import type { Packet } from '../protocol/packet.js'
import { readDescriptor, type LegacyDescriptor } from './legacy-descriptor.js'
import { deviationsOf, idOrNull } from './lenient.js'

export interface HelloAck {
  /** Null when the connector did not say (required by the protocol). */
  readonly connectorId: LegacyConnectorId | null
  /** Null in the 1.0 dialect. */
  readonly protocolVersion: string | null
  readonly deviations: readonly string[]
}

export interface OpenAck {
  /** The id to use from now on; a connector that did not know the asked one answers with a new one, never with an error. */
  readonly channelId: LegacyChannelId
  readonly descriptor: LegacyDescriptor | null
  readonly deviations: readonly string[]
}

/** The error of an answer, in either shape: an ack with `error`, or a packet of `type:"error"`. Null = it is no error. */
export function refusalOf(packet: Packet): WireError | null {
  if (packet.error !== undefined) return packet.error
  return packet.type === 'error' ? { code: 'unnamed_error', message: 'an error without a code' } : null
}

/**
 * Reads the answer to hello. Errors: the connector's own code, `connector_card_id_mismatch` when another connector accepts,
 * `invalid_packet` when the answer is something else.
 */
export function readHelloAck(packet: Packet, cardId: ConnectorCardId): Result<HelloAck> {
  const refusal = refusalOf(packet)
  if (refusal !== null) return err(refusal)
  if (packet.type !== 'connector.hello.ack') return err(wireError('invalid_packet', 'hello was answered with another packet'))
  const said = packet.payload['connector_card_id']
  if (said !== undefined && said !== cardId) return err(wireError('connector_card_id_mismatch'))
  const connectorId = idOrNull(packet.payload['connector_id'])
  const protocolVersion = idOrNull(packet.payload['protocol_version'])
  return ok({
    connectorId: connectorId as LegacyConnectorId | null,
    protocolVersion,
    deviations: deviationsOf({
      hello_ack_without_card_id: said === undefined,
      hello_ack_without_connector_id: connectorId === null,
      hello_ack_without_version: protocolVersion === null,
    }),
  })
}

/**
 * Reads the answer to `channel.open`. The payload's id counts before the envelope's and the Descriptor's, and when all are
 * missing the one that was asked for. Errors: the connector's own, or `invalid_packet` when no id can be found.
 */
export function readOpenAck(packet: Packet, asked: LegacyChannelId | ''): Result<OpenAck> {
  const refusal = refusalOf(packet)
  if (refusal !== null) return err(refusal)
  if (packet.type !== 'channel.open.ack') return err(wireError('invalid_packet', 'channel.open was answered with another packet'))
  const descriptor = readDescriptor(packet.payload['connection_descriptor'])
  const inPayload = idOrNull(packet.payload['connector_channel_id'])
  const inEnvelope = packet.channelId ?? null
  const said = inPayload ?? inEnvelope ?? descriptor?.channelId ?? null
  const channelId = said ?? idOrNull(asked)
  if (channelId === null) return err(wireError('invalid_packet', 'channel.open.ack names no connector_channel_id'))
  return ok({
    channelId: channelId as LegacyChannelId,
    descriptor,
    deviations: [
      ...deviationsOf({
        open_ack_without_envelope_id: inEnvelope === null,
        open_ack_without_payload_id: inPayload === null,
        open_ack_without_descriptor: descriptor === null,
        open_ack_ids_differ: [inPayload, inEnvelope, descriptor?.channelId ?? null].some((id) => id !== null && id !== said),
      }),
      ...(descriptor?.deviations ?? []),
    ],
  })
}
