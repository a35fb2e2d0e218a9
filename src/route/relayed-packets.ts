/** Packets that were relayed and may still be answered: the id that we gave each, and whose packet it was. Bounded. */
import type { ChannelId, LinkId, MessageId, PacketId, RequestId } from '../protocol/ids.js'
import type { Packet } from '../protocol/packet.js'
import type { Entry } from './channel-table.js'

export interface Relayed {
  readonly entry: Entry
  /** On the side it came from. */
  readonly packetId: PacketId
  readonly requestId: RequestId | undefined
  /** Null where no ack is due: deltas and activity. */
  readonly messageId: MessageId | null
  /** Gateway clock, Unix ms. */
  readonly sentAt: number
  /** The xAgent link that it came on, and the channel id used there; null = it came from the connector. */
  readonly from: { readonly link: LinkId; readonly as: ChannelId } | null
}

export class RelayedPackets {
  readonly #bySentId = new Map<PacketId, Relayed>()
  /** How many of them each channel has. */
  readonly #counts = new Map<Entry, number>()

  /** Beyond `max` the oldest is forgotten, which is told: what answers it will match nothing. */
  constructor(private readonly max: number, private readonly onForgotten: () => void) {}

  add(sentAs: PacketId, relayed: Relayed): void {
    this.#bySentId.set(sentAs, relayed)
    this.#counts.set(relayed.entry, this.waitingOn(relayed.entry) + 1)
    const [oldest] = this.#bySentId.keys()
    if (this.#bySentId.size <= this.max || oldest === undefined) return
    this.#remove(oldest)
    this.onForgotten()
  }

  /** What this packet answers, if that was relayed on the same channel. */
  answeredBy({ replyTo }: Packet, entry: Entry): Relayed | null {
    const relayed = replyTo === undefined ? undefined : this.#bySentId.get(replyTo)
    return relayed?.entry === entry ? relayed : null
  }

  /** It was answered: the first answer is the only one. */
  done({ replyTo }: Packet): void {
    if (replyTo !== undefined) this.#remove(replyTo)
  }

  /** Packets of a channel that nothing has answered. */
  waitingOn(entry: Entry): number {
    return this.#counts.get(entry) ?? 0
  }

  #remove(sentAs: PacketId): void {
    const relayed = this.#bySentId.get(sentAs)
    if (relayed === undefined) return
    this.#bySentId.delete(sentAs)
    const left = this.waitingOn(relayed.entry) - 1
    if (left > 0) this.#counts.set(relayed.entry, left)
    else this.#counts.delete(relayed.entry)
  }
}
