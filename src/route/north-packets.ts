/**
 * Packets from xAgent, one small handler per type (PROTOCOL "Packets", DESIGN §5-§6). The switch only dispatches; whether a
 * type may cross at all is decided before it, by the negotiated catalog.
 */
import type { ArrivedFinal } from '../core/event.js'
import { checkHello } from '../core/handshake.js'
import { isOpenTransmission } from '../core/deliver.js'
import { readDescriptor } from '../legacy/legacy-descriptor.js'
import type { MainLink } from '../legacy/port.js'
import { wireError, type ErrorCode, type Result, type WireError } from '../protocol/errors.js'
import type { ChannelId, ConnectorId, MessageId } from '../protocol/ids.js'
import { IM_V2, type FinalMessage, ackPayload, parseAck, parseActivity, parseDelta, parseFinal, salvageFinal } from '../protocol/im-v2.js'
import { isId, type JsonObject, type Packet } from '../protocol/packet.js'
import { PROTOCOL_VERSION } from '../protocol/version.js'
import type { ChannelOpener } from './channel-opener.js'
import type { ChannelRunner } from './channel-runner.js'
import { putChannel, type Entry } from './channel-table.js'
import type { RouteContext } from './context.js'
import type { DescriptorBoard } from './descriptor-board.js'
import type { NorthLink, NorthLinks } from './north-link.js'
import type { NorthReplies } from './north-replies.js'
import type { NorthSignIn } from './north-sign-in.js'
import type { RelayedCalls } from './relayed-calls.js'
import type { V2Relay } from './v2-relay.js'

const REQUEST_TIMEOUT_MS = 30_000

export interface NorthOutlets {
  /** Keeps a hello's `connector_id` where none is stored yet; answers the one that is. */
  connectorId(proposed: ConnectorId | null): ConnectorId
  /** Waits up to the open patience for a Card; false when there is none. */
  whenCardKnown(done: (known: boolean) => void): void
  stopping(): boolean
  /** The bytes behind a final's references, and what its content is told by. */
  filesOf(entry: Entry, final: FinalMessage): Pick<ArrivedFinal, 'files' | 'contentHash'>
}

export class NorthPackets {
  constructor(
    private readonly context: RouteContext,
    private readonly links: NorthLinks,
    private readonly runner: ChannelRunner,
    private readonly opener: ChannelOpener,
    private readonly main: MainLink,
    private readonly calls: RelayedCalls,
    private readonly signIn: NorthSignIn,
    private readonly board: DescriptorBoard,
    private readonly replies: NorthReplies,
    private readonly relay: V2Relay,
    private readonly outlets: NorthOutlets,
  ) {}

  /** One packet. Answers whether it counts against the link's packet limit: acks of open transmissions do not. */
  handle(link: NorthLink, packet: Packet): boolean {
    this.context.metrics.packet('xagent', packet.type)
    if (packet.type === 'connector.hello') this.#hello(link, packet)
    else if (link.hello === null || link.negotiated === null) this.#beforeHello(link, packet)
    else if (this.#mayCross(link, packet)) return this.#dispatch(link, packet)
    return true
  }

  #beforeHello(link: NorthLink, packet: Packet): void {
    this.context.metrics.filtered('outbound', 'before_hello')
    this.replies.refuse(link, packet, wireError('hello_required'))
  }

  /** Deny by default: silence and a count, but an unknown request is told so (DESIGN §6). */
  #mayCross(link: NorthLink, packet: Packet): boolean {
    const reason = link.negotiated?.refusal(packet.type, 'xagent_to_connector') ?? null
    if (reason === null) return true
    this.context.metrics.filtered('outbound', reason)
    if (reason === 'unknown_type' && packet.requestId !== undefined) {
      this.replies.refuse(link, packet, wireError('unsupported_packet', 'no catalog entry lists this request'))
    }
    return false
  }

  #dispatch(link: NorthLink, packet: Packet): boolean {
    switch (packet.type) {
      case 'ping': this.replies.reply(link, packet, 'pong', {}); return true
      case 'channel.open': this.#open(link, packet); return true
      case 'channel.close': this.#close(link, packet); return true
      case 'chat.message.ack': return this.#ack(packet)
      case 'error': return this.#error(packet)
      default: break
    }
    const entry = this.#openChannel(link, packet)
    if (entry === null) return true
    switch (packet.type) {
      case 'chat.message': this.#message(link, packet, entry); break
      case 'chat.message.delta': this.#delta(link, packet, entry); break
      case 'chat.activity': this.#activity(link, packet, entry); break
      case 'connection.descriptor.get': this.#descriptor(link, packet, entry); break
      case 'auth.start': this.signIn.start(link, packet, entry); break
      case 'auth.status': this.signIn.status(link, packet, entry); break
      case 'auth.cancel': this.signIn.cancel(link, packet, entry); break
      case 'auth.logout': this.signIn.logout(link, packet, entry); break
      case 'tool.invoke': this.#tool(link, packet, entry); break
      default: break
    }
    return true
  }

  #hello(link: NorthLink, packet: Packet): void {
    this.outlets.whenCardKnown((known) => {
      const card = this.context.card()
      if (!known || card === null) return this.replies.refuse(link, packet, wireError('connector_unavailable'))
      const hello = checkHello(packet.payload, { cardId: card.cardId, profiles: [IM_V2] })
      if (!hello.ok) return this.replies.refuse(link, packet, hello.error)
      const first = link.hello === null
      link.hello = hello.value
      link.negotiated = this.context.catalog.negotiate(hello.value.profiles, 'im')
      if (first) link.socket.helloDone()
      this.context.log.info({ link: link.socket.id, version: hello.value.version, profiles: hello.value.profiles }, 'xAgent said hello')
      this.replies.reply(link, packet, 'connector.hello.ack', {
        connector_card_id: card.cardId, connector_id: this.outlets.connectorId(hello.value.connectorId), protocol_version: PROTOCOL_VERSION,
      })
    })
  }

  #open(link: NorthLink, packet: Packet): void {
    this.opener.openFor((packet.channelId ?? '') as ChannelId | '', (result) => {
      if (this.links.get(link.socket.id) === undefined) return
      if (!result.ok) return this.replies.reply(link, packet, 'channel.open.ack', {}, result.error)
      const entry = result.value
      const as = packet.channelId !== undefined && this.context.table.find(packet.channelId as ChannelId) === entry ? (packet.channelId as ChannelId) : entry.id
      this.links.take(entry, link)
      link.channels.set(as, entry)
      const descriptor = this.board.of(entry, as)
      entry.shown = JSON.stringify(descriptor)
      this.replies.reply(link, { ...packet, channelId: as }, 'channel.open.ack', { connector_channel_id: as, connection_descriptor: descriptor })
      this.runner.dispatch(entry, { type: 'opened', link: link.socket.id, as })
      this.relay.opened(entry)
    })
  }

  /** The route is closed, binding and sign-in stay; south the channel stays open, so that nothing is lost (DESIGN §3). */
  #close(link: NorthLink, packet: Packet): void {
    const entry = this.#openChannel(link, packet)
    if (entry === null) return
    this.leave(link, entry, packet.channelId as ChannelId)
    this.replies.reply(link, packet, 'channel.close.ack', { status: 'ok' })
  }

  /** A link gives a channel up, or is gone. */
  leave(link: NorthLink, entry: Entry, as: ChannelId): void {
    link.channels.delete(as)
    this.runner.dispatch(entry, { type: 'left', link: link.socket.id })
    if (entry.channel.link !== null) return
    entry.lastLinkGoneAt = this.context.now()
    if (!entry.everConnected) this.context.commits.push([putChannel(entry)], null)
  }

  #ack(packet: Packet): boolean {
    const entry = packet.channelId === undefined ? undefined : this.context.table.find(packet.channelId as ChannelId)
    if (entry === undefined) {
      this.context.metrics.ackOrphaned('unknown_channel')
      return true
    }
    const relayed = this.relay.ackFromXagent(packet, entry)
    if (relayed !== 'foreign') return relayed === 'orphaned'
    const verdict = parseAck(packet.payload)
    if (!verdict.ok || packet.replyTo === undefined) {
      this.context.metrics.ackOrphaned('malformed')
      this.context.metrics.deviations(['ack_malformed'])
      return true
    }
    const matches = isOpenTransmission(entry.channel, this.context.shared, packet.replyTo)
    this.runner.dispatch(entry, { type: 'acked', replyTo: packet.replyTo, verdict: verdict.value })
    return !matches
  }

  /** An error that answers one of our packets; any other is only logged. */
  #error(packet: Packet): boolean {
    const code = packet.error?.code ?? 'unknown'
    const entry = packet.channelId === undefined ? undefined : this.context.table.find(packet.channelId as ChannelId)
    if (entry !== undefined && this.relay.errorFromXagent(packet, entry)) return true
    if (entry !== undefined && packet.replyTo !== undefined) {
      this.runner.dispatch(entry, { type: 'error_answered', replyTo: packet.replyTo, code })
    } else {
      this.context.log.warn({ code: code.slice(0, 64) }, 'xAgent sent an error that answers no message')
    }
    return true
  }

  #message(link: NorthLink, packet: Packet, entry: Entry): void {
    const translated = (): void => this.#final(link, packet, entry)
    if (!this.relay.on) return translated()
    this.relay.final(link, packet, entry, { invalid: (error) => this.#invalidFinal(link, packet, entry, error), begun: translated })
  }

  #final(link: NorthLink, packet: Packet, entry: Entry): void {
    const final = this.#readFinal(packet.payload)
    if (!final.ok) return this.#invalidFinal(link, packet, entry, final.error)
    if (final.value.unknownFields.length > 0) this.context.metrics.deviations(final.value.unknownFields.map(() => 'unknown_field'))
    const refusal: ErrorCode | null = this.outlets.stopping() ? 'shutting_down' : this.context.commits.healthy ? null : 'store_unavailable'
    if (refusal !== null) {
      return this.replies.reply(link, packet, 'chat.message.ack', ackPayload(final.value.messageId, { status: 'rejected', code: refusal, retryable: true }))
    }
    this.runner.dispatch(entry, {
      type: 'final_received',
      final: {
        from: { link: link.socket.id, as: packet.channelId as ChannelId, packetId: packet.packetId },
        messageId: final.value.messageId, text: final.value.text, ...this.outlets.filesOf(entry, final.value),
      },
    })
  }

  /** Checked; under `boundary.mode: observe` a wrong shape is counted and what can be delivered of it is. */
  #readFinal(payload: JsonObject): Result<FinalMessage> {
    const final = parseFinal(payload)
    if (final.ok || !this.context.settings.observe) return final
    const salvaged = salvageFinal(payload)
    if (salvaged.ok) this.context.metrics.deviations(['message_invalid'])
    return salvaged
  }

  /** Rejected where it names a message, else answered with an error (DESIGN §5). */
  #invalidFinal(link: NorthLink, packet: Packet, entry: Entry, error: WireError): void {
    const id = packet.payload['message_id']
    if (!isId(id)) return this.replies.refuse(link, packet, error)
    this.runner.dispatch(entry, {
      type: 'final_invalid',
      from: { link: link.socket.id, as: packet.channelId as ChannelId, packetId: packet.packetId },
      messageId: id as MessageId, message: error.message ?? '',
    })
  }

  /** Cached, never sent where the route translates (v2 §6): a gap or a conflict is answered by the core. */
  #delta(link: NorthLink, packet: Packet, entry: Entry): void {
    if (this.relay.on) return this.relay.delta(link, packet, entry)
    const delta = parseDelta(packet.payload)
    if (!delta.ok) return this.#invalid(link, packet, delta.error, 'delta_invalid')
    this.runner.dispatch(entry, { type: 'delta_received', from: { link: link.socket.id, as: packet.channelId as ChannelId, packetId: packet.packetId }, ...delta.value })
  }

  #activity(link: NorthLink, packet: Packet, entry: Entry): void {
    if (this.relay.on) return this.relay.activity(link, packet, entry)
    const activity = parseActivity(packet.payload)
    if (!activity.ok) return this.#invalid(link, packet, activity.error, 'activity_invalid')
    this.runner.dispatch(entry, { type: 'activity_received', status: activity.value.status })
  }

  #invalid(link: NorthLink, packet: Packet, error: WireError, deviation: string): void {
    this.context.metrics.deviations([deviation])
    this.replies.refuse(link, packet, error)
  }

  #descriptor(link: NorthLink, packet: Packet, entry: Entry): void {
    const answer = (): void => this.replies.reply(link, packet, 'connection.descriptor.get.ack', { connection_descriptor: this.board.of(entry, packet.channelId as ChannelId) })
    if (!this.main.up) return answer()
    this.main.request('connection.descriptor.get', entry.legacyId, {}, REQUEST_TIMEOUT_MS, (got) => {
      if (got.ok) this.board.take(entry, readDescriptor(got.value.payload['connection_descriptor'])?.body ?? null)
      answer()
    })
  }

  #tool(link: NorthLink, packet: Packet, entry: Entry): void {
    if (!this.main.up || !entry.channel.legacyOpen) return this.replies.reply(link, packet, 'tool.invoke.ack', {}, wireError('connector_channel_unavailable'))
    const progress = (payload: JsonObject): void => {
      this.replies.reply(link, packet, 'tool.progress.push', payload)
    }
    this.calls.relay(entry, packet.payload, progress, (answer) => {
      if (answer.ok) this.replies.reply(link, packet, 'tool.invoke.ack', answer.value)
      else this.replies.reply(link, packet, 'tool.invoke.ack', {}, answer.error)
    })
  }

  /** The channel that this link has open under the packet's id; else the error that says what is missing. */
  #openChannel(link: NorthLink, packet: Packet): Entry | null {
    if (packet.channelId === undefined) {
      this.replies.refuse(link, packet, wireError('connector_channel_id_required'))
      return null
    }
    const entry = link.channels.get(packet.channelId as ChannelId)
    if (entry === undefined) this.replies.refuse(link, packet, wireError('channel_not_open'))
    return entry ?? null
  }
}
