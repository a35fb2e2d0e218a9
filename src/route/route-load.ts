/** A route's stored records at start (DESIGN §7): ids, channels, who talks, what waits, what was under way. */
import { restoreInbound, restoreOutbound, settlePlaces } from '../core/load.js'
import { restoreTurn } from '../core/turn-record.js'
import type { Effect } from '../core/effect.js'
import { RECORD_VERSION, ROUTE_KEY, orderPrefix, type ChannelRecord, type InboundRecord, type OutboundRecord, type RecordKind, type RouteRecord, type TurnRecord } from '../core/record.js'
import { StoreError } from '../protocol/errors.js'
import type { RouteName } from '../protocol/ids.js'
import { isObject } from '../protocol/packet.js'
import { eachRecord, type Store } from '../store/port.js'
import type { Entry } from './channel-table.js'
import type { RouteContext, RouteFacts } from './context.js'

/**
 * Every record of a kind. Throws StoreError `record_newer` for one that a later version has written: what it means is not known
 * here, and dropping it would lose something.
 */
async function* known<Value>(store: Store, route: RouteName, kind: RecordKind): AsyncGenerator<Value> {
  for await (const { value } of eachRecord(store, route, kind)) {
    checkVersion(value, kind)
    yield value as Value
  }
}

function checkVersion(value: unknown, kind: RecordKind): void {
  const version = isObject(value) ? value['v'] : undefined
  if (typeof version !== 'number' || version <= RECORD_VERSION) return
  throw new StoreError('record_newer', `the store holds a ${kind} record of version ${version}, this gateway knows ${RECORD_VERSION}: start the newer version again, or give this one a store of its own`)
}

/** The route's own facts but the Card and the Skill, which are settings; those of a new route when nothing is stored. */
export async function loadFacts(store: Store, route: RouteName): Promise<RouteFacts> {
  const record = (await store.get(route, 'route', ROUTE_KEY)) as RouteRecord | undefined
  checkVersion(record, 'route')
  return {
    connectorId: record?.connectorId ?? null,
    legacyConnectorId: record?.legacyConnectorId ?? null,
    legacyCard: null,
    legacySkill: null,
    lastAliveAt: record?.lastAliveAt ?? null,
    gaps: record?.gaps ?? [],
  }
}

/**
 * Restores channels and messages, oldest sequence first, and opens the ledger with what is carried over. Effects that
 * follow (a final in doubt) are handed to `perform` per channel.
 */
export async function loadChannels(store: Store, context: RouteContext, perform: (entry: Entry, effects: readonly Effect[]) => void): Promise<void> {
  const { name } = context.settings
  const { table, shared, ledger } = context
  for await (const record of known<ChannelRecord>(store, name, 'channel')) table.restore(record)
  for await (const record of known<TurnRecord>(store, name, 'turn')) {
    const entry = table.find(record.channelId)
    if (entry !== undefined) restoreTurn(entry.channel, record, context.now())
  }
  const now = context.now()
  for await (const record of known<InboundRecord>(store, name, 'inbound')) {
    const entry = table.find(record.channelId)
    if (entry === undefined) {
      context.log.error({ messageId: record.messageId }, 'a stored message belongs to no channel: it is left in the store')
      continue
    }
    restoreInbound(entry.channel, shared, record, now)
    ledger.inbound.carriedOver += 1
    if (record.files > 0) perform(entry, [{ type: 'fetch_files', seq: record.seq }])
  }
  for (const { channel } of table) settlePlaces(channel, now)
  for await (const record of known<OutboundRecord>(store, name, 'outbound')) {
    const entry = table.find(record.channelId)
    if (entry === undefined || record.state === 'ended') continue
    ledger.outbound.carriedOver += 1
    const effects: Effect[] = []
    restoreOutbound(entry.channel, shared, record, now, effects)
    perform(entry, effects)
  }
  await countOrders(store, context)
}

async function countOrders(store: Store, context: RouteContext): Promise<void> {
  const byPrefix = new Map([...context.table].map((entry) => [orderPrefix(entry.id), entry]))
  const prefixOf = (key: string): string => key.slice(0, key.indexOf('/') + 1)
  for await (const { key } of eachRecord(store, context.settings.name, 'completed_order')) {
    const entry = byPrefix.get(prefixOf(key))
    if (entry !== undefined) entry.channel.completedCount += 1
  }
  for await (const { key } of eachRecord(store, context.settings.name, 'outbound_order')) {
    const entry = byPrefix.get(prefixOf(key))
    if (entry !== undefined) entry.channel.endedOutboundCount += 1
  }
}
