/** What xAgent is shown of each channel: the connector's Descriptor projected, or why it cannot be used (DESIGN §3, §5). */
import type { PacketId, ChannelId, ConnectorId } from '../protocol/ids.js'
import type { JsonObject } from '../protocol/packet.js'
import type { MainLink } from '../legacy/port.js'
import { accountLeft, projectDescriptor, type DescriptorProjection } from '../translate/descriptor.js'
import { putChannel, setDescriptor, type Entry } from './channel-table.js'
import type { RouteContext } from './context.js'
import type { NorthLinks } from './north-link.js'

/** A connector that is back within this time was never away, as far as xAgent is told. */
const OFFLINE_GRACE_MS = 3_000

export class DescriptorBoard {
  #offline = true
  #cancelGrace: (() => void) | null = null

  constructor(
    private readonly context: RouteContext,
    private readonly links: NorthLinks,
    private readonly main: MainLink,
    /** The connector says that an account is on a channel no longer. */
    private readonly onAccountLeft: (entry: Entry) => void,
  ) {}

  /** Takes a Descriptor of the connector over, and shows xAgent what has changed. Answers whether the account has left by it. */
  take(entry: Entry, descriptor: JsonObject | null): boolean {
    const before = entry.descriptor
    const changed = descriptor !== null && setDescriptor(entry, descriptor)
    const left = changed && accountLeft(before, descriptor)
    if (changed) this.context.commits.push([putChannel(entry)], null)
    if (left) this.onAccountLeft(entry)
    this.show(entry)
    return left
  }

  /** The Descriptor under the id that a link uses. */
  of(entry: Entry, as: ChannelId): JsonObject {
    const card = this.context.card()
    return projectDescriptor(entry.descriptor, {
      cardId: card?.cardId ?? ('unknown' as NonNullable<typeof card>['cardId']),
      connectorId: this.context.facts.connectorId ?? ('' as ConnectorId),
      channelId: as,
      tools: [...(card?.tools.keys() ?? [])],
      trouble: this.#trouble(entry),
    })
  }

  /** Pushes the Descriptor to the link that has the channel, if it differs from what that was shown. */
  show(entry: Entry): void {
    const holder = this.links.holder(entry)
    if (holder === null) return
    const descriptor = this.of(entry, holder.as)
    const text = JSON.stringify(descriptor)
    if (text === entry.shown) return
    entry.shown = text
    holder.link.socket.send({
      packetId: this.context.newId('pkt_') as PacketId, channelId: holder.as, type: 'connection.descriptor.push', time: this.context.now(),
      payload: { connection_descriptor: descriptor },
    })
  }

  showAll(): void {
    for (const entry of this.context.table) this.show(entry)
  }

  /** The main link is lost: after the grace every Descriptor says so. */
  legacyLost(): void {
    this.#cancelGrace ??= this.context.clock.timer(OFFLINE_GRACE_MS, () => {
      this.#cancelGrace = null
      this.#offline = true
      this.showAll()
    })
  }

  legacyUp(): void {
    this.#cancelGrace?.()
    this.#cancelGrace = null
    this.#offline = false
  }

  stop(): void {
    this.#cancelGrace?.()
  }

  #trouble(entry: Entry): DescriptorProjection['trouble'] {
    if (this.#offline && !this.main.up) return { status: 'offline', reason: 'connector_unavailable' }
    return entry.authTrouble === null ? null : { status: 'degraded', reason: entry.authTrouble }
  }
}
