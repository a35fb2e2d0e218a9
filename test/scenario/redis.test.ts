/** A gateway, and two of them, on a real Redis: nothing is lost, nothing is sent twice (DESIGN §7). */
import t, { type Test } from 'tap'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gatewayProcess, type GatewayProcess } from '../helper/gateway-process.js'
import { accepted, balanced, heard } from '../helper/people.js'
import { NO_REDIS, redisServer, type RedisServer } from '../helper/redis-server.js'
import { metricValue, openChannel, stand, until } from '../helper/stand.js'
import { startSimConnector } from '../../src/sim/connector.js'
import { SimXagent } from '../../src/sim/xagent.js'

const texts = (count: number): string[] => Array.from({ length: count }, (_, at) => `number ${at + 1}`)

t.test('redis', { skip: NO_REDIS }, async (t) => {
  t.test('text both ways; after a restart what was delivered is known, and what waits is delivered', async (t) => {
    const server = await redisServer(t)
    const s = await stand(t, { store: server.url as `redis://${string}` })
    const { xagent, channelId, legacyId } = await openChannel(s)
    s.connector.push(legacyId, { text: 'hello', messageId: '1' })
    await xagent.waitFor('message')
    await accepted(s, 1)
    t.match(await xagent.sendFinal(channelId, { messageId: 'f1', text: 'hi' }), { payload: { status: 'accepted' } })
    await xagent.terminate()
    s.connector.push(legacyId, { text: 'while away', messageId: '2' })
    await until(async () => (await s.metric('pending_messages', { direction: 'inbound' })) === 1, 'it waits')
    await s.restartGateway()
    const back = s.xagent()
    await back.connect()
    await back.openChannel(channelId)
    s.connector.push(legacyId, { text: 'hello', messageId: '1' })
    await back.waitFor('message', ({ text }) => text === 'while away')
    await until(async () => (await s.metric('messages_total', { direction: 'inbound', outcome: 'absorbed' })) === 1, 'the re-push is absorbed')
    t.strictSame(heard(back), ['while away'])
    t.match(await back.sendFinal(channelId, { messageId: 'f1', text: 'hi' }), { payload: { status: 'duplicate' } })
    t.equal(s.connector.sent.length, 1)
    await balanced(s)
  })

  t.test('Redis goes away under load: loud, honest, and everything is delivered once afterwards', { timeout: 90_000 }, async (t) => {
    const server = await redisServer(t)
    const s = await stand(t, { store: server.url as `redis://${string}` })
    const { xagent, channelId, legacyId } = await openChannel(s)
    const all = texts(60)
    for (const text of all.slice(0, 20)) s.connector.push(legacyId, { text })
    await server.stop()
    for (const text of all.slice(20, 40)) s.connector.push(legacyId, { text })
    await until(async () => (await s.metric('links_paused')) === 1, 'reading is paused')
    t.match(await s.gateway.notReady(), [/the store cannot be written/])
    t.match(await xagent.sendFinal(channelId, { messageId: 'f1', text: 'x' }), { payload: { status: 'rejected', code: 'store_unavailable', retryable: true } })
    t.strictSame(s.connector.toolCalls, [], 'nothing is done that cannot be recorded')
    await server.start()
    for (const text of all.slice(40)) s.connector.push(legacyId, { text })
    await accepted(s, 60)
    t.strictSame([...new Set(heard(xagent))], all, 'in order, none missing')
    t.match(await xagent.sendFinal(channelId, { messageId: 'f1', text: 'x' }), { payload: { status: 'accepted' } })
    t.equal(s.connector.sent.length, 1)
    t.strictSame(await s.gateway.notReady(), [])
    await balanced(s)
  })

  t.test('two instances: the other one takes the route when the owner is killed, and goes on where it was', { timeout: 60_000 }, async (t) => {
    const server = await redisServer(t)
    const pair = await twoInstances(t, server)
    const { connector, first, second } = pair
    const xagent = pair.xagent(first)
    await xagent.connect()
    const { channelId } = await xagent.openChannel()
    const legacyId = connector.channels()[0]?.channelId ?? ''
    connector.signIn(legacyId)
    connector.push(legacyId, { text: 'one' })
    await xagent.waitFor('message', ({ text }) => text === 'one')
    t.match(await xagent.sendFinal(channelId, { messageId: 'f1', text: 'answer one' }), { payload: { status: 'accepted' } })
    t.match(await ready(second), { status: 503, text: /holds the lease/ }, 'the other one waits')
    await xagent.terminate()
    connector.push(legacyId, { text: 'two' })
    await until(async () => (await metric(first, 'pending_messages', { direction: 'inbound' })) === 1, 'it waits')
    await until(async () => (await stored(server)) === 1, 'durable')
    await first.kill('SIGKILL')
    await until(async () => (await ready(second)).status === 200, 'the other one has the route')
    const back = pair.xagent(second)
    await back.connect()
    await back.openChannel(channelId)
    await back.waitFor('message', ({ text }) => text === 'two')
    t.match(await back.sendFinal(channelId, { messageId: 'f1', text: 'answer one' }), { payload: { status: 'duplicate' } })
    t.match(await back.sendFinal(channelId, { messageId: 'f2', text: 'answer two' }), { payload: { status: 'accepted' } })
    t.strictSame(connector.sent.map(({ text }) => text), ['answer one', 'answer two'])
    for (const direction of ['inbound', 'outbound']) t.equal(await metric(second, 'ledger_imbalance', { direction }), 0)
  })

  t.test('an owner that was paused past its lease writes nothing any more, and the other one owns the route alone', { timeout: 60_000 }, async (t) => {
    const server = await redisServer(t)
    const { connector, first, second, xagent: dial } = await twoInstances(t, server)
    const xagent = dial(first)
    await xagent.connect()
    const { channelId } = await xagent.openChannel()
    const legacyId = connector.channels()[0]?.channelId ?? ''
    connector.signIn(legacyId)
    await first.kill('SIGSTOP')
    await until(async () => (await ready(second)).status === 200, 'its lease is over')
    await first.kill('SIGCONT')
    await until(async () => /another instance|another process/.test((await ready(first)).text), 'it knows')
    const other = dial(second)
    await other.connect()
    await other.openChannel(channelId)
    connector.push(legacyId, { text: 'hello' })
    await other.waitFor('message')
    t.match(await other.sendFinal(channelId, { messageId: 'f1', text: 'hi' }), { payload: { status: 'accepted' } })
    t.equal(connector.sent.length, 1)
    await other.terminate()
    await second.kill('SIGKILL')
    await until(async () => (await ready(first)).status === 200, 'it takes the route again when that is free')
    const back = dial(first)
    await back.connect()
    await back.openChannel(channelId)
    connector.push(legacyId, { text: 'hello again' })
    await back.waitFor('message', ({ text }) => text === 'hello again')
    t.match(await back.sendFinal(channelId, { messageId: 'f1', text: 'hi' }), { payload: { status: 'duplicate' } })
    for (const direction of ['inbound', 'outbound']) t.equal(await metric(first, 'ledger_imbalance', { direction }), 0)
  })
})

async function twoInstances(t: Test, { url }: RedisServer) {
  const connector = await startSimConnector({ kind: 'telegram' })
  t.teardown(() => connector.stop())
  const start = async (): Promise<GatewayProcess> => {
    const folder = await mkdtemp(join(tmpdir(), 'xig-pair-'))
    t.teardown(() => rm(folder, { recursive: true, force: true }))
    return gatewayProcess(t, folder, [
      'listen: { host: 127.0.0.1, port: 0 }', 'admin: { port: 0 }', 'xagent: { api_keys: [key] }', `store: "${url}"`, 'ownership: { lease: 2s }',
      'connectors:', `  - { name: telegram, url: "${connector.url}" }`,
    ].join('\n'))
  }
  const first = await start()
  await until(async () => (await ready(first)).status === 200, 'the first has the route')
  const second = await start()
  return {
    connector, first, second,
    xagent: (gateway: GatewayProcess): SimXagent => {
      const xagent = new SimXagent({ baseUrl: `http://127.0.0.1:${gateway.ports.xagent}/telegram`, apiKey: 'key', connectorId: '' })
      t.teardown(() => xagent.terminate())
      return xagent
    },
  }
}

async function ready(gateway: GatewayProcess): Promise<{ status: number; text: string }> {
  const answer = await fetch(`http://127.0.0.1:${gateway.ports.admin}/readyz`, { signal: AbortSignal.timeout(2_000) })
  return { status: answer.status, text: await answer.text() }
}

async function metric(gateway: GatewayProcess, name: string, labels: Record<string, string>): Promise<number> {
  return metricValue(await (await fetch(`http://127.0.0.1:${gateway.ports.admin}/metrics`)).text(), name, labels)
}

/** Waiting messages that are in Redis. */
async function stored({ url }: RedisServer): Promise<number> {
  const { RedisStore } = await import('../../src/store/redis.js')
  const store = new RedisStore(url, { prefix: 'xig:', waitReplicas: 0 })
  try {
    return await store.count('telegram' as never, 'inbound')
  } finally {
    await store.close()
  }
}
