/** What every store must do (src/store/port.ts). One suite; each store brings only how it is opened. */
import type { Test } from 'tap'
import { setImmediate as nextTurn } from 'node:timers/promises'
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

  t.test('a list or count does not wait until nobody writes', async (t) => {
    const { store } = await open(t)
    const fence = await store.acquire(A, 5_000)
    const written: Promise<void>[] = [store.commit([put('k', 1)], fence)]
    let answered = false
    const writer = (async () => {
      // One more in each turn of the event loop, whether or not those before it are done: there is no quiet moment.
      while (!answered && written.length < 5_000) {
        await nextTurn()
        written.push(store.commit([put('k', 1)], fence))
      }
      await Promise.all(written)
    })()
    t.equal((await store.list(A, 'inbound')).records.length, 1)
    t.equal(await store.count(A, 'inbound'), 1)
    answered = true
    await writer
    t.ok(written.length < 5_000, 'answered in the middle of it')
  })

  t.test('what is being written is laid over a page: replaced, added before, between and behind, deleted', async (t) => {
    const { store } = await open(t)
    const fence = await store.acquire(A, 5_000)
    await store.commit(['b', 'd', 'f'].map((key) => put(key, 'stored')), fence)
    const written = store.commit([put('a', 'new'), put('c', 'new'), put('d', 'newer'), put('g', 'new'), remove('f'), remove('never there')], fence)
    t.equal(await store.count(A, 'inbound'), 5)
    t.strictSame((await store.list(A, 'inbound', { limit: 3 })), {
      records: [{ key: 'a', value: 'new' }, { key: 'b', value: 'stored' }, { key: 'c', value: 'new' }], cursor: 'c',
    })
    t.strictSame((await store.list(A, 'inbound', { limit: 3, after: 'c' })), {
      records: [{ key: 'd', value: 'newer' }, { key: 'g', value: 'new' }], cursor: null,
    })
    await written
    t.equal(await store.count(A, 'inbound'), 5)
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

  t.test('a commit that fails is not visible any more; what was written beside it stays', async (t) => {
    const { store } = await open(t)
    const older = await store.acquire(A, 5_000)
    const before = store.commit([put('k', 'before')], older)
    const [, late] = await Promise.allSettled([store.acquire(A, 5_000), store.commit([put('k', 'late'), put('k2', 'late')], older), before])
    t.match(late, { status: 'rejected', reason: { code: 'fence_lost' } })
    t.equal(await store.get(A, 'inbound', 'k'), 'before')
    t.equal(await store.get(A, 'inbound', 'k2'), undefined)
    t.equal(await store.count(A, 'inbound'), 1)
  })

  t.test('a batch that cannot be stored whole leaves nothing', async (t) => {
    const { store } = await open(t)
    const fence = await store.acquire(A, 5_000)
    const circle: Record<string, unknown> = {}
    circle.itself = circle
    for (const bad of [put('', 1), put('k'.repeat(1_501), 1), put('é'.repeat(751), 1), put('\ud800', 1), put('circle', circle)]) {
      await t.rejects(store.commit([put('good', 1), bad, put('good too', 1)], fence))
    }
    t.equal(await store.get(A, 'inbound', 'good'), undefined)
    t.equal(await store.count(A, 'inbound'), 0)
    t.throws(() => store.get(A, 'inbound', 'k'.repeat(1_501)), RangeError)
  })

  t.test('values are JSON data: undefined fields are left out, any text and any name comes back', async (t) => {
    const { store } = await open(t)
    const fence = await store.acquire(A, 5_000)
    const named = JSON.parse('{"__proto__":{"x":1},"constructor":2}') as unknown
    await store.commit([put('fields', { kept: 1, left: undefined }), put('none', undefined), put('text', '\ud800 \0 😀'), put('named', named)], fence)
    t.strictSame(await store.get(A, 'inbound', 'fields'), { kept: 1 })
    t.equal(await store.get(A, 'inbound', 'none'), null, 'a record, though it says nothing')
    t.equal(await store.get(A, 'inbound', 'text'), '\ud800 \0 😀')
    t.equal(JSON.stringify(await store.get(A, 'inbound', 'named')), '{"__proto__":{"x":1},"constructor":2}')
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
    t.strictSame(await store.routes(), ['a', 'b'])
  })

  t.test('names every route that has a record, one being written too', async (t) => {
    const { store } = await open(t)
    t.strictSame(await store.routes(), [])
    const names = ['a', 'a-', 'a-0', 'a0', 'b'] as RouteName[]
    const fences = await Promise.all(names.map((name) => store.acquire(name, 5_000)))
    const written = Promise.all(fences.map((fence) => store.commit([put('k', 1, 'route')], fence)))
    t.strictSame([...(await store.routes())].sort(), names)
    await written
    const emptied = fences.filter(({ route }) => route === 'a-').map((fence) => store.commit([remove('k', 'route')], fence))
    t.strictSame([...(await store.routes())].sort(), ['a', 'a-0', 'a0', 'b'])
    await Promise.all(emptied)
  })

  t.test('lists in the byte order of the keys, page by page, by prefix', async (t) => {
    const { store } = await open(t)
    const fence = await store.acquire(A, 5_000)
    const keys = ['b/2', 'a', 'b/1', 'b/10', 'b', 'b/', 'c', 'é', '~', 'B', '中', '😀', '\uffee', '\0', '\u0001', 'a\0', 'a\u0001', 'a\u0002b']
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
    const astral = await store.list(A, 'inbound', { prefix: '😀', after: '\uff00' })
    t.strictSame(astral.records.map(({ key }) => key), ['😀'], 'a cursor before the prefix, though not by UTF-16')
    await store.commit([put('end\u{10ffff}', 1, 'body'), put('end\u{10ffff}x', 2, 'body')], fence)
    t.equal((await store.list(A, 'body', { prefix: 'end' })).records.length, 2, 'the last character of all too')
  })

  t.test('any key: names of objects\' own machinery, unicode, long ones', async (t) => {
    const { store } = await open(t)
    const fence = await store.acquire(A, 5_000)
    const keys = ['__proto__', 'constructor', 'toString', 'k'.repeat(1_500), 'ключ', 'a b', '%2F', '..', '中'.repeat(500), '\0'.repeat(1_500)]
    await store.commit(keys.map((key, index) => put(key, index)), fence)
    for (const [index, key] of keys.entries()) t.equal(await store.get(A, 'inbound', key), index, JSON.stringify(key.slice(0, 20)))
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
    t.equal(await store.count(A, 'inbound'), 0)
    t.strictSame(await store.routes(), [], 'a probe leaves nothing')
    await Promise.all([store.close(), store.close()])
    await t.rejects(store.probe(), { code: 'store_unavailable' })
    await t.rejects(store.commit([], fence), { code: 'store_unavailable' })
    await t.rejects(store.list(A, 'inbound'), { code: 'store_unavailable' })
    await t.rejects(store.acquire(A, 5_000), { code: 'store_unavailable' })
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
