import t from 'tap'
import { completedKey, deadLetterKey, orderKey, type Change, type DeadLetterRecord } from '../../src/core/record.js'
import { newLedger } from '../../src/core/ledger.js'
import type { ChannelId, LegacyChannelId, MessageId, RouteName } from '../../src/protocol/ids.js'
import { ChannelTable, putChannel } from '../../src/route/channel-table.js'
import { CommitQueue } from '../../src/route/commit-queue.js'
import type { RouteContext } from '../../src/route/context.js'
import { Housekeeping } from '../../src/route/housekeeping.js'
import { MemoryStore } from '../../src/store/memory.js'
import { ManualClock } from '../helper/manual-clock.js'

const R = 'r' as RouteName
const HOUR = 3_600_000

async function rig(deadLetters = { max: 100, maxBytes: 100_000, ttlMs: 7 * 24 * HOUR }, maxMessages = 1_000) {
  const clock = new ManualClock()
  const store = new MemoryStore(() => clock.wall())
  const fence = await store.acquire(R, 10 ** 12)
  const commits = new CommitQueue(store, fence, clock, { onHealth: () => {}, onFenceLost: () => {} })
  const table = new ChannelTable()
  const overflow: Record<string, number> = {}
  const context = {
    settings: { name: R, sweepIntervalMs: 30_000, deadLetters }, clock, table, commits, ledger: newLedger(), shared: { limits: { maxMessages } },
    metrics: { overflowed: (kind: string, n = 1) => { overflow[kind] = (overflow[kind] ?? 0) + n } }, log: { warn: () => {} }, now: () => Math.round(clock.wall()),
  } as unknown as RouteContext
  const removed: string[] = []
  const pending = { inbound: 0, outbound: 0 }
  const housekeeping = new Housekeeping(context, store, () => pending, (entry) => removed.push(entry.id))
  return { clock, store, fence, commits, table, overflow, removed, pending, housekeeping, write: (changes: Change[]) => store.commit(changes, fence) }
}

function completed(channelId: ChannelId, id: string, until: number): Change[] {
  const messageId = id as MessageId
  const key = completedKey(channelId, messageId)
  return [{ op: 'put', kind: 'completed', key, value: { messageId, until } }, { op: 'put', kind: 'completed_order', key: orderKey(channelId, until, messageId), value: key }]
}

t.test('ended ids are forgotten when their time is over, not before', async (t) => {
  const { table, write, housekeeping, store, clock } = await rig()
  const entry = table.add('c' as ChannelId, 'l' as LegacyChannelId)
  const now = clock.wall()
  await write([...completed(entry.id, 'a', now + 1_000), ...completed(entry.id, 'b', now + 2_000)])
  entry.channel.completedCount = 2
  await housekeeping.sweep()
  t.equal(await store.count(R, 'completed'), 2)
  clock.advance(1_000)
  await housekeeping.sweep()
  t.equal(await store.count(R, 'completed'), 1)
  t.equal(await store.count(R, 'completed_order'), 1)
  t.equal(entry.channel.completedCount, 1)
})

t.test('an id that ended twice is not forgotten with its first end', async (t) => {
  const { table, write, housekeeping, store, clock } = await rig()
  const entry = table.add('c' as ChannelId, 'l' as LegacyChannelId)
  const now = clock.wall()
  await write([...completed(entry.id, 'a', now + 1_000)])
  await write([...completed(entry.id, 'a', now + 9_000)])
  entry.channel.completedCount = 2
  clock.advance(1_000)
  await housekeeping.sweep()
  t.match(store.get(R, 'completed', completedKey(entry.id, 'a' as MessageId)), { until: now + 9_000 })
})

t.test('at most ten times max_messages ended ids are kept, the latest ones', async (t) => {
  const { table, write, housekeeping, store, clock } = await rig(undefined, 1)
  const entry = table.add('c' as ChannelId, 'l' as LegacyChannelId)
  const now = clock.wall()
  for (let i = 0; i < 13; i += 1) await write(completed(entry.id, `m${i}`, now + 10_000 + i))
  entry.channel.completedCount = 13
  await housekeeping.sweep()
  t.equal(await store.count(R, 'completed'), 10)
  t.equal(store.get(R, 'completed', completedKey(entry.id, 'm2' as MessageId)), undefined)
  t.ok(store.get(R, 'completed', completedKey(entry.id, 'm3' as MessageId)))
})

t.test('dead letters are bounded by number, bytes and age, and their words go with them', async (t) => {
  const { write, housekeeping, store, clock, overflow } = await rig({ max: 3, maxBytes: 1_000, ttlMs: HOUR })
  const letter = (n: number, bytes: number): Change[] => {
    const id = deadLetterKey(clock.wall(), String(n))
    return [
      { op: 'put', kind: 'dead_letter', key: id, value: { id, endedAt: clock.wall(), bytes, bodyKey: `dead/${id}` } as unknown as DeadLetterRecord },
      { op: 'put', kind: 'body', key: `dead/${id}`, value: { text: 'words', files: [] } },
    ]
  }
  for (let i = 0; i < 5; i += 1) await write(letter(i, 100))
  await housekeeping.start()
  t.equal(housekeeping.deadLetters, 5)
  await housekeeping.sweep()
  t.equal(await store.count(R, 'dead_letter'), 3)
  t.equal(await store.count(R, 'body'), 3)
  t.equal(overflow['dead_letters'], 2)
  await write(letter(9, 900))
  housekeeping.added(900)
  await housekeeping.sweep()
  t.equal(await store.count(R, 'dead_letter'), 2, 'the oldest go until the bytes fit: 100 + 900')
  clock.advance(HOUR)
  await housekeeping.sweep()
  t.equal(await store.count(R, 'dead_letter'), 0)
  t.equal(await store.count(R, 'body'), 0)
  t.equal(overflow['dead_letters'], 4, 'age is no overflow')
  housekeeping.stop()
})

t.test('a channel that never signed in is forgotten an hour after its last link, a signed-in one never', async (t) => {
  const { table, housekeeping, store, clock, write, removed, commits } = await rig()
  const unsigned = table.add('u' as ChannelId, 'lu' as LegacyChannelId)
  const signed = table.add('s' as ChannelId, 'ls' as LegacyChannelId)
  signed.everConnected = true
  unsigned.lastLinkGoneAt = signed.lastLinkGoneAt = clock.wall()
  await write([putChannel(unsigned), putChannel(signed)])
  clock.advance(HOUR - 1)
  await housekeeping.sweep()
  t.strictSame(removed, [])
  clock.advance(1)
  await housekeeping.sweep()
  await commits.drained()
  t.strictSame(removed, ['u'])
  t.equal(table.find('u' as ChannelId), undefined)
  t.equal(await store.count(R, 'channel'), 1)
})

t.test('what the store holds beyond what the state says is told', async (t) => {
  const { housekeeping, write, pending } = await rig()
  await write([{ op: 'put', kind: 'inbound', key: '1', value: {} }, { op: 'put', kind: 'outbound', key: 'a', value: {} }, { op: 'put', kind: 'outbound', key: 'b', value: {} }, { op: 'put', kind: 'outbound_order', key: 'b', value: 'b' }])
  pending.inbound = 1
  pending.outbound = 1
  await housekeeping.sweep()
  t.strictSame(housekeeping.storeDifference, { inbound: 0, outbound: 0 })
  pending.inbound = 0
  await housekeeping.sweep()
  t.strictSame(housekeeping.storeDifference, { inbound: 1, outbound: 0 })
})
