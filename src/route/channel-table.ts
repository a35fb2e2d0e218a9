/** A route's channels and the id map: northbound id, adopted aliases, legacy id (DESIGN §3 Ids). */
import type { Reopened } from '../core/event.js'
import { newChannel, type Channel } from '../core/state.js'
import { RECORD_VERSION, channelKey, type Change, type ChannelRecord } from '../core/record.js'
import type { ChannelId, LegacyChannelId } from '../protocol/ids.js'
import type { JsonObject } from '../protocol/packet.js'
import { statusOf } from '../translate/descriptor.js'

/** One channel as the route knows it: the core's state, and what the two sides have told about it. */
export interface Entry {
  readonly id: ChannelId
  readonly channel: Channel
  readonly aliases: Set<ChannelId>
  legacyId: LegacyChannelId
  /** Last Descriptor of the connector, as it was. */
  descriptor: JsonObject | null
  everConnected: boolean
  lastLinkGoneAt: number | null
  /** Why the platform refuses the bound account, though the connector says connected (outcome class `auth`). */
  authTrouble: string | null
  /** The Descriptor that xAgent was last shown, as JSON: only changes are pushed. */
  shown: string | null
  /** Callbacks of opens that wait for the legacy side. */
  waiters: ((result: Reopened) => void)[]
  opening: boolean
}

export class ChannelTable {
  readonly #byId = new Map<ChannelId, Entry>()
  readonly #byLegacyId = new Map<LegacyChannelId, Entry>()
  readonly #entries = new Set<Entry>()

  get size(): number {
    return this.#entries.size
  }

  [Symbol.iterator](): IterableIterator<Entry> {
    return this.#entries.values()
  }

  /** By the gateway's own id or an adopted one. */
  find(id: ChannelId): Entry | undefined {
    return this.#byId.get(id)
  }

  findLegacy(id: LegacyChannelId): Entry | undefined {
    return this.#byLegacyId.get(id)
  }

  add(id: ChannelId, legacyId: LegacyChannelId): Entry {
    const entry: Entry = {
      id, channel: newChannel(id), aliases: new Set(), legacyId, descriptor: null, everConnected: false, lastLinkGoneAt: null,
      authTrouble: null, shown: null, waiters: [], opening: false,
    }
    this.#entries.add(entry)
    this.#byId.set(id, entry)
    this.#byLegacyId.set(legacyId, entry)
    return entry
  }

  restore(record: ChannelRecord): Entry {
    const entry = this.add(record.channelId, record.legacyId)
    for (const alias of record.aliases) this.adopt(entry, alias)
    entry.descriptor = record.descriptor
    entry.everConnected = record.everConnected
    entry.lastLinkGoneAt = record.lastLinkGoneAt
    return entry
  }

  /** A further northbound id for the same channel. */
  adopt(entry: Entry, alias: ChannelId): void {
    entry.aliases.add(alias)
    this.#byId.set(alias, entry)
  }

  /** The connector has given the channel a new id. */
  moveLegacy(entry: Entry, legacyId: LegacyChannelId): void {
    if (this.#byLegacyId.get(entry.legacyId) === entry) this.#byLegacyId.delete(entry.legacyId)
    entry.legacyId = legacyId
    this.#byLegacyId.set(legacyId, entry)
  }

  remove(entry: Entry): void {
    this.#entries.delete(entry)
    for (const id of [entry.id, ...entry.aliases]) this.#byId.delete(id)
    if (this.#byLegacyId.get(entry.legacyId) === entry) this.#byLegacyId.delete(entry.legacyId)
  }
}

/** No Descriptor of a connector is larger; one that is would be stored and compared with every change. */
const MAX_DESCRIPTOR_CHARACTERS = 65_536

/** Takes a Descriptor of the connector over; answers whether anything changed. One that is absurdly large is left alone. */
export function setDescriptor(entry: Entry, descriptor: JsonObject): boolean {
  const text = JSON.stringify(descriptor)
  if (text.length > MAX_DESCRIPTOR_CHARACTERS) return false
  const changed = JSON.stringify(entry.descriptor) !== text
  entry.descriptor = descriptor
  if (statusOf(descriptor) === 'connected') entry.everConnected = true
  return changed
}

export function channelRecord(entry: Entry): ChannelRecord {
  return {
    v: RECORD_VERSION, channelId: entry.id, aliases: [...entry.aliases], legacyId: entry.legacyId, descriptor: entry.descriptor,
    everConnected: entry.everConnected, lastLinkGoneAt: entry.lastLinkGoneAt,
  }
}

export const putChannel = (entry: Entry): Change => ({ op: 'put', kind: 'channel', key: channelKey(entry.id), value: channelRecord(entry) })
