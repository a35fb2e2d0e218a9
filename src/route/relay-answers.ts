/** Acks and errors that answer relayed packets, carried to the side that those came from (v2 §7, §10). */
import { checkAck, relayedError } from '../protocol/im-v2-relay.js'
import type { PacketId } from '../protocol/ids.js'
import type { Packet } from '../protocol/packet.js'
import type { Entry } from './channel-table.js'
import type { RouteContext } from './context.js'
import { RelayedPackets, type Relayed } from './relayed-packets.js'
import type { RelayWire } from './relay-wire.js'

/** `foreign`: it answers nothing that was relayed here. `orphaned`: it does not match, is counted and goes no further. */
export type AnswerFate = 'matched' | 'orphaned' | 'foreign'

export class RelayAnswers {
  readonly #packets: RelayedPackets

  constructor(
    private readonly context: Pick<RouteContext, 'metrics' | 'settings' | 'now'>,
    private readonly wire: RelayWire,
    max: number,
  ) {
    this.#packets = new RelayedPackets(max, () => context.metrics.overflowed('relayed_packets'))
  }

  /** A packet was relayed under this id. */
  expect(sentAs: PacketId, relayed: Omit<Relayed, 'sentAt'>): void {
    this.#packets.add(sentAs, { ...relayed, sentAt: this.context.now() })
  }

  /** All three must match: `reply_to`, channel, `message_id`. The first ack that does is the only one. */
  ack(packet: Packet, entry: Entry): AnswerFate {
    const relayed = this.#packets.answeredBy(packet, entry)
    if (relayed === null || relayed.messageId === null) return 'foreign'
    const { metrics, settings, now } = this.context
    const ack = checkAck(packet.payload, relayed.messageId, settings.observe)
    metrics.deviations(ack.deviations)
    if (!ack.ok) {
      metrics.ackOrphaned(ack.reason)
      return 'orphaned'
    }
    this.#packets.done(packet)
    if (relayed.from === null) metrics.ackLatency(now() - relayed.sentAt)
    this.wire.answer(relayed, { type: packet.type, payload: ack.payload })
    return 'matched'
  }

  /** Packets of a channel that nothing has answered. */
  waitingOn(entry: Entry): number {
    return this.#packets.waitingOn(entry)
  }

  /** False = it answers nothing that was relayed. */
  error(packet: Packet, entry: Entry): boolean {
    const relayed = this.#packets.answeredBy(packet, entry)
    if (relayed === null) return false
    this.#packets.done(packet)
    this.wire.answer(relayed, { type: packet.type, payload: {}, error: relayedError(packet.error) })
    return true
  }
}
