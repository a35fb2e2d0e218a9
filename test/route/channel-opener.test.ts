import t from 'tap'
import type { MainLink } from '../../src/legacy/port.js'
import { PACKET_SCHEMA } from '../../src/protocol/version.js'
import { decodePacket } from '../../src/protocol/packet.js'
import type { ChannelId, LegacyChannelId } from '../../src/protocol/ids.js'
import type { Result } from '../../src/protocol/errors.js'
import { ChannelOpener } from '../../src/route/channel-opener.js'
import { ChannelTable, setDescriptor, type Entry } from '../../src/route/channel-table.js'
import type { RouteContext } from '../../src/route/context.js'
import { ManualClock } from '../helper/manual-clock.js'

/** An opener before a connector whose answers are given by hand. */
function rig() {
  const clock = new ManualClock()
  const table = new ChannelTable()
  const asked: { id: string; answer: (legacyId: string, status?: string) => void; fail: () => void }[] = []
  const main = {
    up: true,
    request(_type: string, id: string, _payload: object, _ms: number, done: (answer: unknown) => void) {
      asked.push({
        id,
        answer(legacyId, status = 'connected') {
          const decoded = decodePacket(JSON.stringify({
            schema: PACKET_SCHEMA, packet_id: 'p', type: 'channel.open.ack', connector_channel_id: legacyId,
            payload: { connector_channel_id: legacyId, connection_descriptor: { schema: 'xagent.connection/v1', connection: { profile: 'xagent.im.v1', status } } },
          }))
          done(decoded)
        },
        fail: () => done({ ok: false, error: { kind: 'timeout', sent: true } }),
      })
    },
  }
  const open: [string, boolean][] = []
  /** How commits become durable: at once, unless a test has it otherwise. */
  let written = (then: () => void): void => then()
  let settled = 0
  let made = 0
  const context = {
    clock, table, settings: { maxChannels: 3 }, newId: (prefix: string) => `${prefix}${(made += 1)}`,
    commits: { push: (_changes: unknown, then: (() => void) | null) => void (then !== null && written(then)) }, metrics: { deviations: () => {} }, log: { warn: () => {}, error: () => {} },
  } as unknown as RouteContext
  const opener = new ChannelOpener(context, main as unknown as MainLink, {
    onSouth: (entry, isOpen) => open.push([entry.id, isOpen]), onDescriptor: (entry, descriptor) => { if (descriptor !== null) setDescriptor(entry, descriptor) }, onSettled: () => { settled += 1 },
  })
  const results: Result<Entry>[] = []
  return { onWritten: (by: typeof written) => { written = by }, clock, table, main, asked, open, opener, results, settled: () => settled, openFor: (id: string) => opener.openFor(id as ChannelId, (result) => results.push(result)) }
}

t.test('an id that the connector keeps is adopted, any other gets one of the gateway\'s own', async (t) => {
  const { openFor, asked, results, table } = rig()
  openFor('cch_old')
  asked[0]?.answer('cch_old')
  openFor('cch_stale')
  asked[1]?.answer('legacy_2')
  t.match(results, [{ ok: true, value: { id: 'cch_old', legacyId: 'cch_old' } }, { ok: true, value: { id: 'cch_1', legacyId: 'legacy_2' } }])
  t.equal(table.find('cch_stale' as ChannelId), undefined)
})

t.test('xAgent is told the id of a new channel when that is durable: an id that nobody knows after a crash is no channel', async (t) => {
  const { openFor, asked, results, onWritten } = rig()
  const waiting: (() => void)[] = []
  onWritten((then) => waiting.push(then))
  openFor('')
  asked[0]?.answer('legacy_1')
  t.strictSame(results, [])
  for (const then of waiting) then()
  t.match(results, [{ ok: true, value: { legacyId: 'legacy_1' } }])
})

t.test('a new channel under the id of another one is refused: two people would get each other\'s answers', async (t) => {
  const { openFor, asked, results, table } = rig()
  openFor('')
  asked[0]?.answer('legacy_1')
  openFor('')
  asked[1]?.answer('legacy_1')
  t.match(results, [{ ok: true }, { ok: false, error: { code: 'connector_channel_unavailable' } }])
  t.equal(table.size, 1)
})

t.test('a re-open answered with the id of another channel leaves it closed, and the other one as it was', async (t) => {
  const { opener, table, asked, open } = rig()
  const a = table.add('a' as ChannelId, 'la' as LegacyChannelId)
  const b = table.add('b' as ChannelId, 'lb' as LegacyChannelId)
  opener.linkUp()
  asked[0]?.answer('la')
  asked[1]?.answer('la')
  t.strictSame(open, [['a', true], ['b', false]])
  t.equal(table.findLegacy('la' as LegacyChannelId), a)
  t.equal(table.findLegacy('lb' as LegacyChannelId), b)
})

t.test('all channels are opened at once after a reconnect, and settled when every open is answered', async (t) => {
  const { opener, table, asked, settled } = rig()
  for (const id of ['a', 'b', 'c']) table.add(id as ChannelId, `l${id}` as LegacyChannelId)
  opener.linkUp()
  t.strictSame(asked.map(({ id }) => id), ['la', 'lb', 'lc'])
  asked[0]?.answer('la')
  asked[1]?.fail()
  t.equal(settled(), 0)
  asked[2]?.answer('moved')
  t.equal(settled(), 1)
  t.equal(table.find('c' as ChannelId)?.legacyId, 'moved')
})

t.test('an open that fails while the link is up is tried again', async (t) => {
  const { opener, table, asked, clock } = rig()
  table.add('a' as ChannelId, 'la' as LegacyChannelId)
  opener.linkUp()
  asked[0]?.fail()
  clock.advance(2_000)
  t.equal(asked.length, 2)
})

t.test('an unknown id waits up to 3 s for the link, then is refused and nothing is stored', async (t) => {
  const { opener, openFor, main, asked, results, clock, table } = rig()
  main.up = false
  openFor('x')
  clock.advance(2_999)
  t.equal(results.length, 0)
  clock.advance(1)
  t.match(results, [{ ok: false, error: { code: 'connector_channel_unavailable' } }])
  openFor('y')
  main.up = true
  opener.linkUp()
  t.strictSame(asked.map(({ id }) => id), ['y'])
  t.equal(table.size, 0)
})

t.test('max_channels is a limit for new channels, not for known ones', async (t) => {
  const { openFor, table, results } = rig()
  for (const id of ['a', 'b', 'c']) table.add(id as ChannelId, `l${id}` as LegacyChannelId)
  openFor('new')
  openFor('a')
  t.match(results, [{ ok: false, error: { message: /limit of 3 channels/ } }, { ok: true, value: { id: 'a' } }])
})
