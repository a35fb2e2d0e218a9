/** What only a store behind a network can meet: a server that is away, that restarts, that says nothing; leases between stores. */
import t from 'tap'
import type { Change } from '../../src/core/record.js'
import type { RouteName } from '../../src/protocol/ids.js'
import { RedisStore, type RedisOptions } from '../../src/store/redis.js'
import { NO_REDIS, redisServer, type RedisServer } from '../helper/redis-server.js'
import { until } from '../helper/stand.js'

const A = 'a' as RouteName
const put = (key: string, value: unknown): Change => ({ op: 'put', kind: 'inbound', key, value })

function open(t: { teardown(fn: () => Promise<void>): unknown }, { url }: Pick<RedisServer, 'url'>, more: Partial<RedisOptions> = {}): RedisStore {
  const store = new RedisStore(url, { prefix: 'xig:', waitReplicas: 0, ...more })
  t.teardown(() => store.close())
  return store
}

/** Resolves when the store answers again. */
const works = (store: RedisStore): Promise<void> => until(() => store.probe().then(() => true, () => false), 'the store works')

t.test('redis', { skip: NO_REDIS }, async (t) => {
  t.test('a server that is away fails at once, and is found when it is there', async (t) => {
    const server = await redisServer(t)
    await server.stop()
    const store = open(t, server)
    await t.rejects(store.acquire(A, 5_000), { code: 'store_unavailable' })
    await server.start()
    await works(store)
    t.ok(await store.acquire(A, 5_000))
  })

  t.test('what was committed survives kill -9 of the server, and the owner goes on with its fence', async (t) => {
    const server = await redisServer(t)
    const store = open(t, server)
    const fence = await store.acquire(A, 60_000)
    await store.commit([put('k', 1)], fence)
    await server.stop()
    await t.rejects(store.commit([put('k2', 2)], fence), { code: 'store_unavailable' })
    await t.rejects(store.get(A, 'inbound', 'k'), { code: 'store_unavailable' }, 'never taken for "not there"')
    await server.start()
    await works(store)
    t.equal(await store.get(A, 'inbound', 'k'), 1)
    await store.commit([put('k2', 2)], fence)
    t.equal(await store.count(A, 'inbound'), 2)
  })

  t.test('a server that says nothing is left after some seconds, and what was asked fails', { timeout: 60_000 }, async (t) => {
    const server = await redisServer(t)
    const store = open(t, server)
    const fence = await store.acquire(A, 60_000)
    server.pause()
    await t.rejects(store.commit([put('k', 1)], fence), { code: 'store_unavailable' })
    server.goOn()
    await works(store)
    await store.commit([put('k', 2)], fence)
    t.equal(await store.get(A, 'inbound', 'k'), 2, 'the same batch again, or a later one, is the last word')
  })

  t.test('a lease is held against another store, ends with its time, and the old fence can do nothing', async (t) => {
    const server = await redisServer(t)
    const [one, other] = [open(t, server), open(t, server)]
    const fence = await one.acquire(A, 300)
    await one.commit([put('k', 'first')], fence)
    await t.rejects(other.acquire(A, 300), { code: 'lease_held', message: /\d+ ms more/ })
    await one.renew(fence, 300)
    await until(() => other.acquire(A, 60_000).then(() => true, () => false), 'its time is over')
    await t.rejects(one.commit([put('k', 'stale')], fence), { code: 'fence_lost' })
    await t.rejects(one.renew(fence, 300), { code: 'fence_lost' })
    await one.release(fence)
    t.equal(await other.get(A, 'inbound', 'k'), 'first')
    await t.rejects(one.acquire(A, 300), { code: 'lease_held' }, 'a fence that is lost releases nothing')
  })

  t.test('a commit waits for as many replicas as are asked for', async (t) => {
    const server = await redisServer(t)
    const store = open(t, server, { waitReplicas: 1 })
    const fence = await store.acquire(A, 60_000)
    await t.rejects(store.commit([put('k', 1)], fence), { code: 'store_unavailable', message: /only 0 of 1 replicas/ })
    const replica = await redisServer(t, ['--replicaof', '127.0.0.1', String(server.port)])
    await until(() => store.commit([put('k', 2)], fence).then(() => true, () => false), 'the replica follows')
    const there = open(t, replica)
    t.equal(await there.get(A, 'inbound', 'k'), 2)
  })

  t.test('password and database of the URL; a wrong one fails, and says nothing of it', async (t) => {
    const server = await redisServer(t, ['--requirepass', 'hunter22'])
    const url = (password: string): string => server.url.replace('redis://', `redis://:${password}@`)
    const [right, second, wrong] = [open(t, { url: url('hunter22') }), open(t, { url: `${url('hunter22')}/1` }), open(t, { url: url('hunter23') })]
    await right.commit([put('k', 1)], await right.acquire(A, 60_000))
    t.equal(await second.get(A, 'inbound', 'k'), undefined, 'another database')
    const error = await wrong.probe().then(() => null, (reason: Error) => reason)
    t.match(error, { code: 'store_unavailable' })
    t.notMatch(error?.message, /hunter/)
  })

  t.test('scripts that somebody flushed are loaded again', async (t) => {
    const server = await redisServer(t)
    const [store, other] = [open(t, server), open(t, server)]
    const fence = await store.acquire(A, 60_000)
    await other.commit([], await other.acquire('b' as RouteName, 60_000))
    await flushScripts(server.port)
    await t.rejects(store.commit([put('k', 1)], fence), { code: 'store_unavailable' })
    await store.commit([put('k', 1)], fence)
    t.equal(await store.get(A, 'inbound', 'k'), 1)
  })

  t.test('a record that cannot be read is named, and the rest of the list goes on', async (t) => {
    const server = await redisServer(t)
    const unreadable: string[] = []
    const store = open(t, server, { onUnreadable: (kind, key) => unreadable.push(`${kind} ${key}`) })
    await store.commit([put('1', 1), put('2', 2), put('3', 3)], await store.acquire(A, 60_000))
    await command(server.port, 'HSET', 'xig:{a}:inbound', '1', '{broken')
    t.strictSame(await store.list(A, 'inbound', { limit: 2 }), { records: [{ key: '2', value: 2 }], cursor: '2' })
    t.strictSame(unreadable, ['inbound 1'])
    await t.rejects(store.get(A, 'inbound', '1'), { code: 'record_unreadable' })
  })

  t.test('two gateways share a database by their prefixes', async (t) => {
    const server = await redisServer(t)
    const [one, other] = [open(t, server, { prefix: 'one:' }), open(t, server, { prefix: 'two:' })]
    await one.commit([put('k', 1)], await one.acquire(A, 60_000))
    t.ok(await other.acquire(A, 60_000))
    t.strictSame([await one.routes(), await other.routes()], [['a'], []])
  })
})

async function command(port: number, ...args: string[]): Promise<void> {
  const { createClient } = await import('@keyv/redis')
  const client = createClient({ url: `redis://127.0.0.1:${port}` })
  await client.connect()
  await client.sendCommand(args)
  await client.close()
}

const flushScripts = (port: number): Promise<void> => command(port, 'SCRIPT', 'FLUSH')
