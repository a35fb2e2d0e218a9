/**
 * Messages of people from a connector that speaks `xagent.im.v2`: checked, and sent on to the link that has the channel.
 * Nothing is kept: what xAgent cannot take now is not acked, so the connector keeps it (v2 §9).
 */
import type { Ended } from '../core/effect.js'
import { wireError, type ErrorCode } from '../protocol/errors.js'
import type { MessageId } from '../protocol/ids.js'
import { ackPayload } from '../protocol/im-v2.js'
import { checkMessage } from '../protocol/im-v2-relay.js'
import { isId, isObject, type JsonObject, type Packet } from '../protocol/packet.js'
import type { Entry } from './channel-table.js'
import type { RouteContext } from './context.js'
import type { NorthLinks } from './north-link.js'
import { RelayAnswers } from './relay-answers.js'
import type { RelayFiles } from './relay-files.js'
import { RelayOrder } from './relay-order.js'
import type { RelayWire } from './relay-wire.js'

/** Messages that wait for xAgent's ack, in the whole route. */
const MAX_AWAITED = 10_000

export interface RelayInboundOutlets {
  readonly ended: (entry: Entry, ended: Ended) => void
  readonly stopping: () => boolean
}

export class RelayInbound {
  readonly answers: RelayAnswers
  readonly #order = new RelayOrder()
  /** Channels on which a message found no link. */
  readonly #turnedAway = new Set<Entry>()

  constructor(
    private readonly context: RouteContext,
    private readonly links: NorthLinks,
    private readonly wire: RelayWire,
    private readonly files: RelayFiles,
    private readonly outlets: RelayInboundOutlets,
  ) {
    this.answers = new RelayAnswers(context, wire, MAX_AWAITED)
  }

  message(packet: Packet, entry: Entry): void {
    const { result, deviations } = checkMessage(packet.payload, 'connector_to_xagent', this.context.settings.observe)
    this.context.metrics.deviations(deviations)
    if (!result.ok) return this.#end(packet, entry, 'not_forwarded', 'invalid_packet', result.error.message)
    if (this.outlets.stopping() || this.links.holder(entry) === null) return this.#turnAway(entry)
    const files = filesOf(result.value)
    this.#order.follow(
      entry, files.map((file) => this.files.remember(entry, file)),
      (urls) => this.#send(packet, entry, result.value, urls),
      (error) => this.context.log.error({ err: error, channelId: entry.id }, 'the files of a relayed message could not be remembered: the connector keeps it'),
    )
  }

  /** Whether the connector has messages that wait: turned away since this was last asked, or sent on and never acked. */
  owes(entry: Entry): boolean {
    return this.#turnedAway.delete(entry) || this.answers.waitingOn(entry) > 0
  }

  #send(packet: Packet, entry: Entry, checked: JsonObject, urls: readonly (string | null)[]): void {
    const { files: _files, ...words } = checked
    const files = filesOf(checked).flatMap((file, index) => (typeof urls[index] === 'string' ? [{ ...file, download_url: urls[index] }] : []))
    this.context.metrics.deviations(urls.filter((url) => url === null).map(() => 'file_without_url'))
    if (files.length === 0 && (words['text'] ?? '') === '') return this.#end(packet, entry, 'files_not_supported', 'files_not_supported')
    const { sent, packetId } = this.wire.toHolder(entry, { type: packet.type, payload: { ...words, ...(files.length > 0 && { files }) } })
    switch (sent) {
      case 'queued':
        return this.answers.expect(packetId, { entry, packetId: packet.packetId, requestId: packet.requestId, messageId: checked['message_id'] as MessageId, from: null })
      case 'too_large': return this.#end(packet, entry, 'too_large', 'message_too_large')
      case 'full': case 'closed': return this.#turnAway(entry)
    }
  }

  /** Not acked, so that the connector delivers it again. */
  #turnAway(entry: Entry): void {
    this.#turnedAway.add(entry)
    this.context.metrics.filtered('inbound', 'no_link')
  }

  /** A message that goes no further is told so, or the connector would deliver it for ever. It ends here, and is in the books. */
  #end(packet: Packet, entry: Entry, outcome: 'not_forwarded' | 'files_not_supported' | 'too_large', code: ErrorCode, detail: string | null = null): void {
    const id = packet.payload['message_id']
    const { packetId: replyTo, requestId } = packet
    const answer = isId(id)
      ? { type: 'chat.message.ack', payload: ackPayload(id as MessageId, { status: 'rejected', code, retryable: false }) }
      : { type: 'error', payload: {}, error: wireError(code, detail ?? undefined) }
    this.wire.toConnector(entry, { ...answer, replyTo, ...(requestId !== undefined && { requestId }) })
    this.context.ledger.inbound.received += 1
    this.context.ledger.inbound.ended += 1
    this.outlets.ended(entry, {
      type: 'ended', direction: 'inbound', outcome, reason: null, code, detail, certainty: 'certain', messageId: (isId(id) ? id : '') as MessageId,
      originalId: null, attempts: 0, ageMs: 0, inLedger: true, deadLetterId: null, deadLetterBytes: 0,
    })
  }
}

function filesOf(payload: JsonObject): readonly JsonObject[] {
  return Array.isArray(payload['files']) ? payload['files'].filter(isObject) : []
}
