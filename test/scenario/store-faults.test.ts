import t from 'tap'
import { join } from 'node:path'
import type { RouteName } from '../../src/protocol/ids.js'
import { openStore } from '../../src/store/open.js'
import type { Fence, Store } from '../../src/store/port.js'
import { faultyStore, type Faults } from '../helper/faulty-store.js'
import { openChannel, stand, until } from '../helper/stand.js'

const noFaults = (): Faults => ({ writes: false, reads: false, fenceLost: false, commits: 0 })

t.test('a store that cannot be written: loud, honest, and everything is delivered once afterwards', { timeout: 60_000 }, async (t) => {
  const faults = noFaults()
  const s = await stand(t, { store: 'lmdb', wrapStore: faultyStore(faults) })
  const { xagent, channelId, legacyId } = await openChannel(s)
  t.strictSame(await s.gateway.notReady(), [])
  faults.writes = true
  s.connector.push(legacyId, { text: 'one' })
  await until(async () => (await s.metric('links_paused')) === 1, 'reading is paused')
  const ready = await fetch(`http://127.0.0.1:${s.gateway.ports.admin}/readyz`)
  t.equal(ready.status, 503)
  t.match(await ready.text(), /the store cannot be written/)
  t.equal((await fetch(`http://127.0.0.1:${s.gateway.ports.admin}/livez`)).status, 200)
  t.match(await xagent.sendFinal(channelId, { messageId: 'f1', text: 'x' }), { payload: { status: 'rejected', code: 'store_unavailable', retryable: true } })
  t.equal(s.connector.toolCalls.length, 0, 'nothing is done that could not be recorded')
  for (let i = 2; i <= 5; i += 1) s.connector.push(legacyId, { text: `number ${i}` })
  faults.writes = false
  await until(async () => (await s.metric('messages_total', { direction: 'inbound', outcome: 'accepted' })) === 5, 'all five are accepted')
  t.strictSame([...new Set(xagent.received.map(({ text }) => text))], ['one', 'number 2', 'number 3', 'number 4', 'number 5'])
  t.equal(xagent.received.filter(({ repeated }) => repeated).length, 0)
  t.strictSame(await s.gateway.notReady(), [])
  t.equal(await s.metric('links_paused'), 0)
  t.match(await xagent.sendFinal(channelId, { messageId: 'f1', text: 'x' }), { payload: { status: 'accepted' } })
  for (const direction of ['inbound', 'outbound']) t.equal(await s.metric('ledger_imbalance', { direction }), 0)
  t.ok((await s.metric('store_errors_total', { op: 'commit' })) > 0)
})

t.test('a store that fails while a final runs: the call is made once, and acked when it is recorded', { timeout: 60_000 }, async (t) => {
  const faults = noFaults()
  const s = await stand(t, { store: 'lmdb', wrapStore: faultyStore(faults) })
  const { xagent, channelId } = await openChannel(s)
  s.connector.onTool(() => {
    faults.writes = true
    return undefined
  })
  const ack = xagent.sendFinal(channelId, { messageId: 'f1', text: 'x' })
  await s.connector.waitFor('sent')
  await until(async () => (await s.metric('store_errors_total', { op: 'commit' })) > 0, 'its end cannot be written')
  t.notOk(xagent.events.all('packet').some(({ type }) => type === 'chat.message.ack'), 'not acked before it is durable')
  faults.writes = false
  t.match(await ack, { payload: { status: 'accepted' } })
  t.equal(s.connector.sent.length, 1)
})

t.test('a lookup that fails never makes a new message of an old one', { timeout: 60_000 }, async (t) => {
  const faults = noFaults()
  const s = await stand(t, { store: 'lmdb', wrapStore: faultyStore(faults) })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'hello', messageId: '1' })
  await until(async () => (await s.metric('messages_total', { direction: 'inbound', outcome: 'accepted' })) === 1, 'accepted')
  await xagent.sendFinal(channelId, { messageId: 'f1', text: 'x' })
  faults.reads = true
  s.connector.push(legacyId, { text: 'hello', messageId: '1' })
  t.match(await xagent.sendFinal(channelId, { messageId: 'f1', text: 'x' }), { payload: { status: 'rejected', code: 'store_unavailable', retryable: true } })
  faults.reads = false
  await until(async () => (await s.metric('messages_total', { direction: 'inbound', outcome: 'absorbed' })) === 1, 'absorbed')
  t.match(await xagent.sendFinal(channelId, { messageId: 'f1', text: 'x' }), { payload: { status: 'duplicate' } })
  t.equal(xagent.received.length, 1)
  t.equal(s.connector.sent.length, 1)
})

t.test('a lost fence: links are closed, nothing is written or sent any more, readiness says why', { timeout: 60_000 }, async (t) => {
  const faults = noFaults()
  const s = await stand(t, { store: 'lmdb', wrapStore: faultyStore(faults) })
  const { xagent, channelId, legacyId } = await openChannel(s)
  faults.fenceLost = true
  s.connector.push(legacyId, { text: 'hello' })
  t.match(await xagent.waitFor('closed'), { code: 1012 })
  t.strictSame(await s.gateway.notReady(), ['telegram: another process owns this route'])
  const tried = faults.commits
  const again = s.xagent()
  await again.dial()
  again.send({ type: 'chat.message', connector_channel_id: channelId, payload: { message_id: 'f', text: 'x' } })
  t.match(await again.waitFor('closed'), { code: 1013 })
  t.equal(faults.commits, tried)
  t.equal(s.connector.toolCalls.length, 0)
})

t.test('what is stored cannot be read at the start: the route says so, loads when it can, and has lost nothing', { timeout: 60_000 }, async (t) => {
  const faults = noFaults()
  const s = await stand(t, { store: 'lmdb', wrapStore: faultyStore(faults) })
  const { xagent, channelId, legacyId } = await openChannel(s)
  await xagent.terminate()
  s.connector.push(legacyId, { text: 'waits' })
  await until(async () => (await s.metric('pending_messages', { direction: 'inbound' })) === 1, 'it waits')
  await s.restartGateway(async () => { faults.reads = true })
  t.match(await s.gateway.notReady(), [/^telegram: the disk is gone/])
  faults.reads = false
  await until(async () => (await s.gateway.notReady()).length === 0, 'it is loaded')
  const back = s.xagent()
  await back.connect()
  await back.openChannel(channelId)
  await back.waitFor('message', ({ text }) => text === 'waits')
  await until(async () => (await s.metric('messages_total', { direction: 'inbound', outcome: 'accepted' })) === 1, 'accepted')
  t.equal(await s.metric('ledger_imbalance', { direction: 'inbound' }), 0)
})

t.test('a record of a newer version is refused clearly, and stays as it is', { timeout: 60_000 }, async (t) => {
  const s = await stand(t, { store: 'lmdb' })
  await openChannel(s)
  let record: Record<string, unknown> = {}
  await s.restartGateway(async () => {
    await inStore(s.folder, async (store, fence) => {
      const [found] = (await store.list(fence.route, 'channel')).records
      record = { ...(found?.value as object), v: 2, meaning: 'unknown' }
      await store.commit([{ op: 'put', kind: 'channel', key: found?.key ?? '', value: record }], fence)
    })
  })
  t.match(await s.gateway.notReady(), [/^telegram: the store holds a channel record of version 2, this gateway knows 1: start the newer version again/])
  t.equal((await s.xagent().fetch('/connector-card.json')).status, 503)
  await s.restartGateway(() => inStore(s.folder, async (store, fence) => {
    t.strictSame((await store.list(fence.route, 'channel')).records[0]?.value, record)
    await store.commit([{ op: 'put', kind: 'channel', key: (await store.list(fence.route, 'channel')).records[0]?.key ?? '', value: { ...record, v: 1 } }], fence)
  }))
  t.strictSame(await s.gateway.notReady(), [])
})

/** Something done to the store of a stand whose gateway does not run. */
async function inStore(folder: string, work: (store: Store, fence: Fence) => Promise<void>): Promise<void> {
  const store = openStore(`lmdb:${join(folder, 'store')}`, { sync: false, now: Date.now })
  const fence = await store.acquire('telegram' as RouteName, 5_000)
  await work(store, fence)
  await store.release(fence)
  await store.close()
}
