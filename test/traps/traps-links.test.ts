/** The traps that are about links, opens and what lies in a socket (see traps.test.ts): 4, 5, 7, 19, 20. */
import t from 'tap'
import { parseConfig } from '../../src/config/load.js'
import type { Gap } from '../../src/core/record.js'
import { readOpenAck } from '../../src/legacy/dialect.js'
import { Liveness } from '../../src/legacy/liveness.js'
import type { MainLink } from '../../src/legacy/port.js'
import { LEGACY_TIMING } from '../../src/legacy/timing.js'
import type { ChannelId, LegacyChannelId } from '../../src/protocol/ids.js'
import type { Packet } from '../../src/protocol/packet.js'
import { ChannelOpener } from '../../src/route/channel-opener.js'
import { ChannelTable } from '../../src/route/channel-table.js'
import type { RouteContext } from '../../src/route/context.js'
import { GapWatch } from '../../src/route/gap-watch.js'
import { Rig } from '../helper/channel-rig.js'
import { ManualClock } from '../helper/manual-clock.js'
import { answer, send } from '../legacy/fake-connector.js'
import { invoke, rig } from '../legacy/rig.js'
import { presetOf } from '../translate/golden.js'

t.test('trap 4: a push is not acked, is read at once, and an open channel is not opened again', async (t) => {
  const links = await rig(t)
  await links.next('up')
  for (let n = 1; n <= 100; n += 1) send(links.connector.socket(), { type: 'message.push', connector_channel_id: 'cch_1', payload: { message_id: String(n) } })
  const last = await links.next('packet', 100)
  t.equal(last.packet.payload['message_id'], '100')
  t.strictSame(links.connector.received.all.map(({ packet }) => packet.type), ['connector.hello'], 'nothing was sent back')

  const asked: string[] = []
  const table = new ChannelTable()
  const entry = table.add('cch_north' as ChannelId, 'legacy_1' as LegacyChannelId)
  entry.channel.legacyOpen = true
  const context = { clock: new ManualClock(), table, settings: { maxChannels: 9 }, log: { warn: () => {} } } as unknown as RouteContext
  const main = { up: true, request: (_type: string, id: string) => asked.push(id) } as unknown as MainLink
  const opener = new ChannelOpener(context, main, { onSouth: () => {}, onDescriptor: () => {}, onSettled: () => {} })
  let opened = 0
  for (let times = 0; times < 3; times += 1) opener.openFor('cch_north' as ChannelId, () => { opened += 1 })
  t.strictSame([opened, asked], [3, []], 'answered by the gateway itself')
})

t.test('trap 5: a push before its open.ack or after its close.ack is taken; ids that change are followed, ours do not', async (t) => {
  const core = new Rig()
  core.channel.legacyOpen = false
  const early = core.push('before the ack')
  core.open()
  core.ack(core.lastTransmit(), { status: 'accepted' })
  core.leave()
  const late = core.push('after the close')
  t.equal(core.transmits.length, 1)
  core.open()
  t.strictSame(core.transmits.map(({ messageId }) => messageId), [early, late])

  const ack = { packetId: 'p', type: 'channel.open.ack', channelId: 'legacy_new', payload: { connector_channel_id: 'legacy_new' } } as unknown as Packet
  t.match(readOpenAck(ack, 'legacy_old' as LegacyChannelId), { ok: true, value: { channelId: 'legacy_new' } })

  const links = await rig(t, {}, { toolLinks: 1, hello: () => ({ cardId: 'im.example', connectorId: 'conn_stored' }) as never })
  await links.connector.packet('connector.hello', 2)
  t.strictSame(links.connector.packets('connector.hello').map(({ payload }) => payload?.['connector_id']), ['conn_stored', 'conn_stored'], 'the same on every link')
})

t.test('trap 7: a slow call starves nobody and does not fail the liveness check of its link', async (t) => {
  const links = await rig(t, { script: ({ packet }) => packet.type === 'tool.invoke' }, { toolLinks: 4 })
  await links.next('up')
  await links.connector.packet('connector.hello', 2)
  const slow = invoke(links, 'slow')
  const first = await links.connector.packet('tool.invoke', 1)
  const quick = invoke(links, 'quick')
  const second = await links.connector.packet('tool.invoke', 2)
  t.not(first.socket, second.socket, 'each on a link of its own, and neither on the main link')
  t.notOk([first.socket, second.socket].includes(links.connector.socket(0)))
  answer(second.socket, second.packet, { payload: { result: {} } })
  t.match(await quick.answers.waitFor(), { ok: true })
  t.equal(slow.answers.all.length, 0)

  const clock = new ManualClock()
  let calling = true
  let dead = 0
  const liveness = new Liveness(LEGACY_TIMING, clock, { ping: () => {}, judged: () => !calling, dead: () => { dead += 1 } })
  liveness.start()
  clock.advance(120_000)
  t.equal(dead, 0)
  calling = false
  clock.advance(LEGACY_TIMING.pingAfterMs + 2 * LEGACY_TIMING.pingAnswerMs)
  t.equal(dead, 1, 'silence counts once the call has ended')
})

t.test('trap 19: a frame of 5 MiB passes on the legacy link, whose limit is 16 MiB', async (t) => {
  const { config } = parseConfig('x.yaml', 'xagent: { api_keys: [k] }\nconnectors: [{ name: a, url: "http://127.0.0.1:1" }]', {})
  t.equal(config.limits.legacyMaxFrameBytes, 16 * 2 ** 20)
  const links = await rig(t, {}, { maxFrameBytes: config.limits.legacyMaxFrameBytes })
  await links.next('up')
  send(links.connector.socket(), { type: 'message.push', payload: { text: 'x'.repeat(5 * 2 ** 20) } })
  const { packet } = await links.next('packet')
  t.equal(String(packet.payload['text']).length, 5 * 2 ** 20)
  t.notOk(links.names().includes('down'))
})

t.test('trap 20: what was taken over survives a restart, and each gap is reported with what the connector does meanwhile', async (t) => {
  const before = new Rig({ preset: 'wechat' })
  const id = before.wechat('ann', 'still there?')
  const after = new Rig({ preset: 'wechat', store: new Map(before.store), now: before.now + 5_000 })
  after.open()
  t.strictSame(after.transmits.map(({ messageId }) => messageId), [id])

  const clock = new ManualClock()
  const table = new ChannelTable()
  table.add('cch_1' as ChannelId, 'legacy_1' as LegacyChannelId)
  const facts = { gaps: [] as Gap[] }
  const counted: number[] = []
  const logged: string[] = []
  const context = {
    now: () => clock.monotonic(), table, facts, metrics: { gap: (ms: number) => counted.push(ms) }, log: { warn: (_fields: object, line: string) => logged.push(line) }, shared: { dialect: { preset: presetOf('telegram') } },
  } as unknown as RouteContext
  const gaps = new GapWatch(context, () => {})
  const begun = clock.monotonic()
  gaps.started(begun - 2_000)
  gaps.closed()
  gaps.lost()
  clock.advance(300)
  gaps.closed()
  t.strictSame(facts.gaps.map(({ from, to, cause }) => ({ ms: to - from, cause })), [{ ms: 2_000, cause: 'restart' }, { ms: 300, cause: 'link_lost' }])
  t.strictSame(counted, [2_000, 300])
  t.match(logged, [/could not be read for 2000 ms.*: lost/, /could not be read for 300 ms.*: lost/])
})
