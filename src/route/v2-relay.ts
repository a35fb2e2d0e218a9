/**
 * The way past the translation: a connector whose Card lists `xagent.im.v2` is relayed under the same catalog, shapes, limits
 * and metrics, with ids mapped, and without retention (DESIGN §6). Acks and errors of what was relayed find their way back
 * also after the connector has changed its profile.
 *
 *   connector ─ check ─ remember files ─▶ xAgent      chat.message.ack, error ─▶ connector
 *   xAgent    ─ check ─ forward files  ─▶ connector   chat.message.ack, error ─▶ xAgent
 */
import type { Ended } from '../core/effect.js'
import type { MainLink } from '../legacy/port.js'
import { IM_V2 } from '../protocol/im-v2.js'
import type { LegacyChannelId } from '../protocol/ids.js'
import type { Packet } from '../protocol/packet.js'
import type { Entry } from './channel-table.js'
import type { RouteContext } from './context.js'
import type { NorthLink, NorthLinks } from './north-link.js'
import type { NorthReplies } from './north-replies.js'
import type { AnswerFate } from './relay-answers.js'
import type { RelayFiles } from './relay-files.js'
import { RelayInbound } from './relay-inbound.js'
import { RelayOutbound, type FinalOutlets } from './relay-outbound.js'
import { RelayWire } from './relay-wire.js'

export interface RelayOutlets {
  readonly ended: (entry: Entry, ended: Ended) => void
  readonly stopping: () => boolean
  /** Opens a channel again on the connector. */
  readonly reopen: (entry: Entry) => void
}

export class V2Relay {
  readonly #inbound: RelayInbound
  readonly #outbound: RelayOutbound

  constructor(
    private readonly context: RouteContext,
    links: NorthLinks,
    private readonly main: Pick<MainLink, 'up' | 'send'>,
    files: RelayFiles,
    replies: NorthReplies,
    private readonly outlets: RelayOutlets,
  ) {
    const wire = new RelayWire(context, links, main)
    this.#inbound = new RelayInbound(context, links, wire, files, outlets)
    this.#outbound = new RelayOutbound(context, wire, files, replies, outlets)
  }

  /** Whether the connector is spoken to in `xagent.im.v2`. */
  get on(): boolean {
    return this.context.card()?.spoken === IM_V2
  }

  final(link: NorthLink, packet: Packet, entry: Entry, outlets: FinalOutlets): void {
    this.#outbound.final({ link, packet, entry }, outlets)
  }

  delta(link: NorthLink, packet: Packet, entry: Entry): void {
    this.#outbound.delta({ link, packet, entry })
  }

  activity(link: NorthLink, packet: Packet, entry: Entry): void {
    this.#outbound.activity({ link, packet, entry })
  }

  /** An ack of xAgent's; `foreign` = of a message that was not relayed. */
  ackFromXagent(packet: Packet, entry: Entry): AnswerFate {
    return this.#inbound.answers.ack(packet, entry)
  }

  /** An error of xAgent's; false = it answers nothing that was relayed. */
  errorFromXagent(packet: Packet, entry: Entry): boolean {
    return this.#inbound.answers.error(packet, entry)
  }

  /**
   * xAgent has opened the channel. Where messages wait at the connector it gets the same sign, a `channel.open`, and delivers
   * what it kept (v2 §1).
   */
  opened(entry: Entry): void {
    if (this.on && this.main.up && this.#inbound.owes(entry)) this.outlets.reopen(entry)
  }

  messageFromConnector(packet: Packet): void {
    const entry = this.#entryOf(packet)
    if (entry === undefined) this.context.metrics.filtered('inbound', 'no_link')
    else this.#inbound.message(packet, entry)
  }

  ackFromConnector(packet: Packet): void {
    const entry = this.#entryOf(packet)
    if (entry === undefined) this.context.metrics.ackOrphaned('unknown_channel')
    else if (this.#outbound.answers.ack(packet, entry) === 'foreign') this.context.metrics.ackOrphaned('unknown_packet')
  }

  /** An error of the connector's; false = it answers nothing that was relayed. */
  errorFromConnector(packet: Packet): boolean {
    const entry = this.#entryOf(packet)
    return entry !== undefined && this.#outbound.error(packet, entry)
  }

  #entryOf({ channelId }: Packet): Entry | undefined {
    return channelId === undefined ? undefined : this.context.table.findLegacy(channelId as LegacyChannelId)
  }
}
