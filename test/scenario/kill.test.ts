import t, { type Test } from 'tap'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gatewayProcess, type GatewayProcess } from '../helper/gateway-process.js'
import { metricValue, until } from '../helper/stand.js'
import { openStore } from '../../src/store/open.js'
import type { RouteName } from '../../src/protocol/ids.js'
import { startSimConnector, type SimConnector } from '../../src/sim/connector.js'
import { SimXagent } from '../../src/sim/xagent.js'

interface Ground {
  readonly connector: SimConnector
  start(): Promise<GatewayProcess>
  /** Resolves when the store holds this many waiting messages: what is not committed yet is lost at a SIGKILL, by design. */
  durable(messages: number): Promise<void>
  xagent(gateway: GatewayProcess, connectorId?: string): SimXagent
  /** An xAgent with one open channel on which somebody is signed in. */
  signedIn(gateway: GatewayProcess): Promise<{ readonly xagent: SimXagent; readonly channelId: string; readonly legacyId: string }>
}

async function ground(t: Test, more = ''): Promise<Ground> {
  const folder = await mkdtemp(join(tmpdir(), 'xig-kill-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const connector = await startSimConnector({ kind: 'telegram' })
  t.teardown(() => connector.stop())
  const config = [
    'listen: { host: 127.0.0.1, port: 0 }', 'admin: { port: 0 }', 'xagent: { api_keys: [key] }', `store: "lmdb:${folder}/data"`, `files: { dir: "${folder}/files" }`, more,
    'connectors:', `  - { name: telegram, url: "${connector.url}" }`,
  ].join('\n')
  const made: Ground = {
    connector,
    start: () => gatewayProcess(t, folder, config),
    async durable(messages) {
      const store = openStore(`lmdb:${folder}/data`, { sync: false, now: Date.now })
      await until(async () => (await store.count('telegram' as RouteName, 'inbound')) === messages, `${messages} messages are durable`)
      await store.close()
    },
    xagent(gateway, connectorId = '') {
      const xagent = new SimXagent({ baseUrl: `http://127.0.0.1:${gateway.ports.xagent}/telegram`, apiKey: 'key', connectorId })
      t.teardown(() => xagent.terminate())
      return xagent
    },
    async signedIn(gateway) {
      const xagent = made.xagent(gateway)
      await xagent.connect()
      const { channelId } = await xagent.openChannel()
      const legacyId = connector.channels()[0]?.channelId ?? ''
      connector.signIn(legacyId)
      return { xagent, channelId, legacyId }
    },
  }
  return made
}

async function metric(gateway: GatewayProcess, name: string, labels: Record<string, string> = {}): Promise<number> {
  return metricValue(await (await fetch(`http://127.0.0.1:${gateway.ports.admin}/metrics`)).text(), name, labels)
}

const pendingIs = (gateway: GatewayProcess, n: number) => until(async () => (await metric(gateway, 'pending_messages', { direction: 'inbound' })) === n, `${n} messages wait`)

t.test('messages taken over before a SIGKILL are delivered after it, in order, once, under the same id', { timeout: 60_000 }, async (t) => {
  const { connector, start, durable, signedIn, xagent: newXagent } = await ground(t)
  const first = await start()
  const { xagent: before, channelId, legacyId } = await signedIn(first)
  connector.push(legacyId, { text: 'zero' })
  const zero = await before.waitFor('message')
  await until(async () => (await metric(first, 'messages_total', { direction: 'inbound', outcome: 'accepted' })) === 1, 'zero is accepted')
  before.onMessage('none')
  connector.push(legacyId, { text: 'one' })
  const one = await before.waitFor('message', ({ text }) => text === 'one')
  await before.terminate()
  connector.push(legacyId, { text: 'two' })
  connector.push(legacyId, { text: 'three' })
  await durable(3)
  await first.kill('SIGKILL')

  const second = await start()
  const after = newXagent(second, before.connectorId)
  await after.connect()
  t.equal(after.connectorId, before.connectorId, 'ids survive')
  await pendingIs(second, 3)
  t.equal((await after.openChannel(channelId)).channelId, channelId)
  await after.events.atLeast('message', 3)
  await pendingIs(second, 0)
  t.strictSame(after.received.map(({ text }) => text), ['one', 'two', 'three'])
  t.equal(after.received[0]?.messageId, one.messageId)
  t.not(after.received[0]?.packetId, one.packetId)
  t.notOk(after.received.some(({ messageId }) => messageId === zero.messageId), 'what was accepted is not sent again')
  t.equal(await metric(second, 'ledger_imbalance', { direction: 'inbound' }), 0)
  await until(() => second.log().includes('"cause":"restart"'), 'the gap of the restart is logged')
})

t.test('a SIGKILL does not prolong retention: the message expires at its own time, and is never sent', { timeout: 60_000 }, async (t) => {
  const { connector, start, durable, signedIn, xagent: newXagent } = await ground(t, 'retention: { ttl: 6s, sweep_interval: 1s }')
  const first = await start()
  const { xagent: before, channelId, legacyId } = await signedIn(first)
  await before.terminate()
  const takenAt = Date.now()
  connector.push(legacyId, { text: 'too late' })
  await durable(1)
  await first.kill('SIGKILL')
  const second = await start()
  const restartedAfter = Date.now() - takenAt
  const line = () => second.log().split('\n').find((candidate) => candidate.includes('"outcome":"expired"') && candidate.endsWith('}'))
  await until(() => line() !== undefined, 'its end is logged', 20_000)
  t.equal(await metric(second, 'messages_total', { direction: 'inbound', outcome: 'expired' }), 1)
  const ended = JSON.parse(line() ?? '') as { ageMs: number }
  t.ok(ended.ageMs >= 6_000, 'not before its time')
  t.ok(ended.ageMs < Math.max(6_000, restartedAfter) + 1_000, `no new ttl began with the restart: age ${ended.ageMs} ms, restarted after ${restartedAfter} ms`)
  const after = newXagent(second)
  await after.connect()
  await after.openChannel(channelId)
  connector.push(connector.channels()[0]?.channelId ?? '', { text: 'on time' })
  await after.waitFor('message', ({ text }) => text === 'on time')
  t.equal(after.received.length, 1)
})

t.test('a SIGKILL between the call and its answer leaves the final in doubt: not sent again', { timeout: 60_000 }, async (t) => {
  const { connector, start, signedIn, xagent: newXagent } = await ground(t)
  const first = await start()
  const { xagent: before, channelId } = await signedIn(first)
  connector.onTool(() => ({ kind: 'no_answer' }))
  const lost = before.sendFinal(channelId, { messageId: 'f1', text: 'the answer' })
  lost.catch(() => {})
  await connector.waitFor('sent')
  await first.kill('SIGKILL')
  connector.onTool(() => undefined)
  const second = await start()
  const after = newXagent(second)
  await after.connect()
  await after.openChannel(channelId)
  t.match(await after.sendFinal(channelId, { messageId: 'f1', text: 'the answer' }), { payload: { status: 'rejected', code: 'delivery_in_doubt', retryable: false } })
  t.equal(connector.sent.length, 1)
  t.equal(await metric(second, 'dead_letters'), 1)
  t.equal(await metric(second, 'ledger_imbalance', { direction: 'outbound' }), 0)
})

t.test('a second gateway on the same data folder waits for the first, and goes on at once when that is killed', { timeout: 60_000 }, async (t) => {
  const { connector, start, durable, signedIn, xagent: newXagent } = await ground(t, 'ownership: { lease: 30s }')
  const first = await start()
  const { xagent: before, channelId, legacyId } = await signedIn(first)
  await before.terminate()
  connector.push(legacyId, { text: 'kept' })
  await durable(1)
  const second = await start()
  const ready = async () => (await fetch(`http://127.0.0.1:${second.ports.admin}/readyz`)).text()
  t.match(await ready(), /another process holds the lease/)
  t.equal((await fetch(`http://127.0.0.1:${second.ports.xagent}/telegram/connector-card.json`)).status, 503)
  await first.kill('SIGKILL')
  await until(async () => (await fetch(`http://127.0.0.1:${second.ports.admin}/readyz`)).status === 200, 'the second is ready', 10_000)
  const after = newXagent(second)
  await after.connect()
  await after.openChannel(channelId)
  t.equal((await after.waitFor('message')).text, 'kept')
})

t.test('SIGTERM drains and exits with 0', { timeout: 60_000 }, async (t) => {
  const { start } = await ground(t)
  const gateway = await start()
  t.strictSame(await gateway.kill('SIGTERM'), { code: 0, signal: null })
  await until(() => gateway.log().includes('the gateway has stopped'), 'it says so')
})
