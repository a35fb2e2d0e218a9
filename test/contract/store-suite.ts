/** What every store must do (src/store/port.ts). One suite; each store brings only how it is opened. */
import type { Test } from 'tap'
import type { Change } from '../../src/core/record.js'
import type { RouteName } from '../../src/protocol/ids.js'
import { eachRecord, type Store } from '../../src/store/port.js'

export interface Opened {
  readonly store: Store
  /** Closes it and opens it anew on the same data; null where nothing outlives the store. */
  readonly reopen: (() => Promise<Store>) | null
}

const A = 'a' as RouteName
const B = 'b' as RouteName
const put = (key: string, value: unknown, kind: Change['kind'] = 'inbound'): Change => ({ op: 'put', kind, key, value })
const remove = (key: string, kind: Change['kind'] = 'inbound'): Change => ({ op: 'delete', kind, key })

export function storeSuite(t: Test, open: (t: Test) => Promise<Opened>): void {
  t.test('keeps what was committed, and forgets what was deleted', async (t) => {
    const { store } = await open(t)
    const fence = await store.acquire(A, 5_000)
    await store.commit([put('k', { n: 1, list: ['x'], none: null })], fence)
    t.strictSame(await store.get(A, 'inbound', 'k'), { n: 1, list: ['x'], none: null })
    t.equal(await store.get(A, 'body', 'k'), undefined, 'kinds are apart')
    await store.commit([put('k2', 2), remove('k')], fence)
    t.equal(await store.get(A, 'inbound', 'k'), undefined)
    t.equal(await store.count(A, 'inbound'), 1)
  })

  t.test('a batch that is being written is already visible', async (t) => {
    const { store } = await open(t)
    const fence = await store.acquire(A, 5_000)
    await store.commit([put('old', 'x')], fence)
    const written = store.commit([put('new', { text: 'y' }, 'body'), put('n', 1), remove('old')], fence)
    t.strictSame(await store.get(A, 'body', 'new'), { text: 'y' })
    t.equal(await store.get(A, 'inbound', 'old'), undefined)
    t.strictSame((await store.list(A, 'inbound')).records, [{ key: 'n', value: 1 }])
    t.equal(await store.count(A, 'inbound'), 1)
    await written
    t.strictSame(await store.get(A, 'body', 'new'), { text: 'y' })
  })

  t.test('commits of a route take effect in the order in which they were called', async (t) => {
    const { store } = await open(t)
    const fence = await store.acquire(A, 5_000)
    const order: number[] = []
    await Promise.all(Array.from({ length: 100 }, (_, i) => store.commit([put('k', i)], fence).then(() => order.push(i))))
    t.strictSame(order, Array.from({ length: 100 }, (_, i) => i))
    t.equal(await store.get(A, 'inbound', 'k'), 99)
  })

  t.test('values are not shared with the caller', async (t) => {
    const { store } = await open(t)
    const fence = await store.acquire(A, 5_000)
    const value = { list: [1] }
    const written = store.commit([put('k', value)], fence)
    value.list.push(2)
    await written
    const read = (await store.get(A, 'inbound', 'k')) as { list: number[] }
    t.strictSame(read, { list: [1] })
    read.list.push(3)
    t.strictSame(await store.get(A, 'inbound', 'k'), { list: [1] })
  })

  t.test('a commit with an older fence changes nothing and says fence_lost', async (t) => {
    const { store } = await open(t)
    const older = await store.acquire(A, 5_000)
    const newer = await store.acquire(A, 5_000)
    t.ok(newer.number > older.number)
    await t.rejects(store.commit([put('k', 1)], older), { code: 'fence_lost' })
    t.equal(await store.get(A, 'inbound', 'k'), undefined)
    await t.rejects(store.renew(older, 5_000), { code: 'fence_lost' })
    await store.release(older)
    await store.commit([put('k', 2)], newer)
    t.equal(await store.get(A, 'inbound', 'k'), 2)
  })

  t.test('routes are independent: data and fences', async (t) => {
    const { store } = await open(t)
    const a = await store.acquire(A, 5_000)
    const b = await store.acquire(B, 5_000)
    await store.commit([put('k', 'of a')], a)
    await store.commit([put('k', 'of b')], b)
    await store.acquire(A, 5_000)
    await store.commit([put('k2', 'of b')], b)
    t.equal(await store.get(A, 'inbound', 'k'), 'of a')
    t.equal(await store.count(B, 'inbound'), 2)
    t.strictSame([...(await store.routes())].sort(), ['a', 'b'])
  })

  t.test('lists in the byte order of the keys, page by page, by prefix', async (t) => {
    const { store } = await open(t)
    const fence = await store.acquire(A, 5_000)
    const keys = ['b/2', 'a', 'b/1', 'b/10', 'b', 'b/', 'c', 'é', '~', 'B', '中', '😀', '\uffee']
    await store.commit(keys.map((key) => put(key, key)), fence)
    await store.commit([put('b/3', 'another kind', 'body')], fence)
    const sorted = [...keys].sort((x, y) => Buffer.compare(Buffer.from(x), Buffer.from(y)))
    const all: string[] = []
    for await (const { key } of eachRecord(store, A, 'inbound')) all.push(key)
    t.strictSame(all, sorted)
    const first = await store.list(A, 'inbound', { prefix: 'b/', limit: 2 })
    t.strictSame(first.records.map(({ key }) => key), ['b/', 'b/1'])
    const second = await store.list(A, 'inbound', { prefix: 'b/', limit: 2, after: first.cursor ?? '' })
    t.strictSame(second.records.map(({ key }) => key), ['b/10', 'b/2'])
    t.equal(second.cursor, null)
    t.strictSame(await store.list(A, 'inbound', { prefix: 'zz' }), { records: [], cursor: null })
  })

  t.test('any key: names of objects\' own machinery, unicode, long ones', async (t) => {
    const { store } = await open(t)
    const fence = await store.acquire(A, 5_000)
    const keys = ['__proto__', 'constructor', 'toString', 'k'.repeat(1_500), 'ключ', 'a b', '%2F', '..']
    await store.commit(keys.map((key, index) => put(key, index)), fence)
    for (const [index, key] of keys.entries()) t.equal(await store.get(A, 'inbound', key), index, key.slice(0, 20))
    t.equal(await store.count(A, 'inbound'), keys.length)
    t.equal(await store.get(A, 'inbound', 'hasOwnProperty'), undefined)
  })

  t.test('10,000 records are counted and listed', async (t) => {
    const { store } = await open(t)
    const fence = await store.acquire(A, 5_000)
    await store.commit(Array.from({ length: 10_000 }, (_, i) => put(String(i).padStart(6, '0'), { i })), fence)
    t.equal(await store.count(A, 'inbound'), 10_000)
    let n = 0
    for await (const { value } of eachRecord(store, A, 'inbound')) {
      if ((value as { i: number }).i !== n) throw new Error(`record ${n} is out of order`)
      n += 1
    }
    t.equal(n, 10_000)
  })

  t.test('a released lease can be taken; probe writes; a closed store says so', async (t) => {
    const { store } = await open(t)
    const fence = await store.acquire(A, 5_000)
    await store.renew(fence, 5_000)
    await store.release(fence)
    await store.acquire(A, 5_000)
    await store.probe()
    await store.close()
    await t.rejects(store.probe(), { code: 'store_unavailable' })
    await t.rejects(store.commit([], fence), { code: 'store_unavailable' })
    t.throws(() => store.get(A, 'inbound', 'k'), { code: 'store_unavailable' })
  })

  t.test('what was committed is there after it was closed and opened again', async (t) => {
    const { store, reopen } = await open(t)
    if (reopen === null) return void t.pass('nothing outlives this store, by design')
    const fence = await store.acquire(A, 5_000)
    void store.commit([put('k', 1)], fence)
    await store.release(fence)
    const again = await reopen()
    t.equal(await again.get(A, 'inbound', 'k'), 1)
    const next = await again.acquire(A, 5_000)
    t.ok(next.number > fence.number, 'fences never repeat')
  })
}
