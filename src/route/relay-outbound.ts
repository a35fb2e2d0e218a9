/**
 * Finals, deltas and activity for a connector that speaks `xagent.im.v2`: checked, and sent on with the connector's channel
 * id. Nothing is kept: a final that the connector cannot take now is refused as temporary, and xAgent redelivers it.
 */
import type { Ended } from '../core/effect.js'
import { outboundKey } from '../core/record.js'
import { StoreError, type ErrorCode, type Result, type WireError } from '../protocol/errors.js'
import type { ChannelId, MessageId } from '../protocol/ids.js'
import { ackPayload } from '../protocol/im-v2.js'
import { checkActivity, checkDelta, checkMessage } from '../protocol/im-v2-relay.js'
import { isObject, type JsonObject, type Packet } from '../protocol/packet.js'
import type { Entry } from './channel-table.js'
import type { RouteContext } from './context.js'
import type { NorthLink } from './north-link.js'
import type { NorthReplies } from './north-replies.js'
import { RelayAnswers } from './relay-answers.js'
import type { ForwardFailure, RelayFiles } from './relay-files.js'
import { RelayOrder } from './relay-order.js'
import type { RelayWire } from './relay-wire.js'

/** Finals that wait for the connector's ack, and packets that only an error could answer, in the whole route. */
const MAX_AWAITED = 10_000
const MAX_UNACKED = 1_000

/** What a final from xAgent needs beyond the relay. */
export interface FinalOutlets {
  /** It is no valid final. */
  readonly invalid: (error: WireError) => void
  /** The route had begun it while it translated: it is finished there. */
  readonly begun: () => void
}

export interface RelayOutboundOutlets {
  readonly ended: (entry: Entry, ended: Ended) => void
  readonly stopping: () => boolean
}

interface Arrived {
  readonly link: NorthLink
  readonly packet: Packet
  readonly entry: Entry
}

export class RelayOutbound {
  readonly answers: RelayAnswers
  readonly #unacked: RelayAnswers
  readonly #order = new RelayOrder()

  constructor(
    private readonly context: RouteContext,
    private readonly wire: RelayWire,
    private readonly files: RelayFiles,
    private readonly replies: NorthReplies,
    private readonly outlets: RelayOutboundOutlets,
  ) {
    this.answers = new RelayAnswers(context, wire, MAX_AWAITED)
    this.#unacked = new RelayAnswers(context, wire, MAX_UNACKED)
  }

  final(arrived: Arrived, { invalid, begun }: FinalOutlets): void {
    const { metrics, settings } = this.context
    const { result, deviations } = checkMessage(arrived.packet.payload, 'xagent_to_connector', settings.observe)
    metrics.deviations(deviations)
    if (!result.ok) return invalid(result.error)
    if (this.outlets.stopping()) return this.#refuse(arrived, 'shutting_down', true)
    this.#whetherBegun(arrived, (known) => {
      if (known) begun()
      else this.#forward(arrived, result.value)
    })
  }

  delta({ link, packet, entry }: Arrived): void {
    this.#unackedPacket({ link, packet, entry }, checkDelta(packet.payload, this.context.settings.observe))
  }

  activity({ link, packet, entry }: Arrived): void {
    this.#unackedPacket({ link, packet, entry }, checkActivity(packet.payload, this.context.settings.observe))
  }

  /** An error of the connector's; false = it answers nothing that was relayed. */
  error(packet: Packet, entry: Entry): boolean {
    return this.answers.error(packet, entry) || this.#unacked.error(packet, entry)
  }

  #forward(arrived: Arrived, checked: JsonObject): void {
    const { entry, packet } = arrived
    const files = Array.isArray(checked['files']) ? checked['files'].filter(isObject) : []
    const refs = files.map((file) => this.files.forward(entry, String(file['file_ref'] ?? '')))
    this.#order.follow(entry, refs, (forwarded) => this.#send(arrived, checked, files, forwarded), (error) => {
      this.context.log.error({ err: error, channelId: entry.id, packetId: packet.packetId }, 'the files of a final could not be forwarded')
      this.#refuse(arrived, 'target_temporarily_unavailable', true)
    })
  }

  #send(arrived: Arrived, checked: JsonObject, files: readonly JsonObject[], forwarded: readonly Result<string, ForwardFailure>[]): void {
    const { packet, entry } = arrived
    const failed = forwarded.find((one) => !one.ok)
    if (failed?.ok === false) return this.#unforwarded(arrived, failed.error)
    const refs = forwarded.flatMap((one) => (one.ok ? [one.value] : []))
    const withRefs = files.map((file, index) => ({ ...file, file_ref: refs[index] }))
    const sentAs = this.wire.toConnector(entry, { type: packet.type, payload: { ...checked, ...(files.length > 0 && { files: withRefs }) } })
    if (sentAs !== null) return this.answers.expect(sentAs, relayedFrom(arrived, checked['message_id'] as MessageId))
    this.context.metrics.filtered('outbound', 'no_link')
    this.#refuse(arrived, 'connector_unavailable', true)
  }

  /** A file that the connector does not take: the final is over, or put off, before anything of it was sent (v2 §5). */
  #unforwarded(arrived: Arrived, { code, retry }: ForwardFailure): void {
    const { packet, entry } = arrived
    this.#refuse(arrived, retry ? 'target_temporarily_unavailable' : 'target_delivery_failed', retry)
    if (!retry) {
      this.context.ledger.outbound.received += 1
      this.context.ledger.outbound.ended += 1
    }
    this.outlets.ended(entry, {
      type: 'ended', direction: 'outbound', outcome: retry ? 'deferred' : 'rejected', reason: null, code, detail: null, certainty: 'certain',
      messageId: packet.payload['message_id'] as MessageId, originalId: null, attempts: 1, ageMs: 0, inLedger: !retry, deadLetterId: null, deadLetterBytes: 0,
    })
  }

  #unackedPacket(arrived: Arrived, { result, deviations }: ReturnType<typeof checkDelta>): void {
    const { link, packet, entry } = arrived
    this.context.metrics.deviations(deviations)
    if (!result.ok) return this.replies.refuse(link, packet, result.error)
    const sentAs = this.wire.toConnector(entry, { type: packet.type, payload: result.value })
    if (sentAs === null) this.context.metrics.filtered('outbound', 'no_link')
    else this.#unacked.expect(sentAs, relayedFrom(arrived, null))
  }

  /**
   * Whether the route has to do with this final since before the connector spoke v2. Relayed as well, it could reach the
   * person twice: the connector does not know what was sent through its tools.
   */
  #whetherBegun(arrived: Arrived, told: (begun: boolean) => void): void {
    const { id, channel } = arrived.entry
    const messageId = arrived.packet.payload['message_id'] as MessageId
    if (channel.jobs.has(messageId) || channel.deferred.has(messageId)) return told(true)
    if (channel.endedOutboundCount === 0) return told(false)
    const failed = (error: unknown): void => {
      if (!(error instanceof StoreError)) throw error
      this.#refuse(arrived, 'store_unavailable', true)
    }
    try {
      const record = this.context.commits.read('outbound', outboundKey(id, messageId))
      if (record instanceof Promise) record.then((found: unknown) => told(found !== undefined), failed)
      else told(record !== undefined)
    } catch (error) {
      failed(error)
    }
  }

  #refuse({ link, packet }: Arrived, code: ErrorCode, retryable: boolean): void {
    this.replies.reply(link, packet, 'chat.message.ack', ackPayload(packet.payload['message_id'] as MessageId, { status: 'rejected', code, retryable }))
  }
}

function relayedFrom({ link, packet, entry }: Arrived, messageId: MessageId | null) {
  return { entry, packetId: packet.packetId, requestId: packet.requestId, messageId, from: { link: link.socket.id, as: packet.channelId as ChannelId } }
}
