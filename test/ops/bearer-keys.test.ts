import { timingSafeEqual } from 'node:crypto'
import t from 'tap'
import { BearerKeys } from '../../src/ops/bearer-keys.js'

t.test('accepts each of several keys and nothing else', async (t) => {
  const keys = new BearerKeys(['first-key', 'second-key'])
  t.ok(keys.accepts('Bearer first-key'))
  t.ok(keys.accepts('bearer second-key'))
  t.ok(keys.accepts('BEARER   second-key '))
  for (const header of ['', 'Bearer', 'Bearer ', 'Bearer first', 'Bearer first-keyx', 'first-key', 'Basic first-key', 'Bearer first-key,second-key']) {
    t.notOk(keys.accepts(header), header)
  }
})

t.test('compares every key, in constant time, as digests of one length, also after a match', async (t) => {
  const lengths: number[] = []
  const keys = new BearerKeys(['a', 'a-much-longer-key', 'c'], (left, right) => {
    lengths.push(left.length, right.length)
    return timingSafeEqual(left, right)
  })
  t.ok(keys.accepts('Bearer a'))
  t.notOk(keys.accepts('Bearer x'))
  t.notOk(keys.accepts(''))
  t.same(lengths, Array.from({ length: 3 * 3 * 2 }, () => 32))
})

t.test('is open without keys, and takes an empty key for a mistake', async (t) => {
  t.ok(new BearerKeys([]).open)
  t.ok(new BearerKeys([]).accepts(''))
  t.throws(() => new BearerKeys(['good', '']), { code: 'config_invalid' })
})

t.test('keeps the keys it has when others are refused', async (t) => {
  const keys = new BearerKeys(['good'])
  t.throws(() => keys.replace(['']))
  t.ok(keys.accepts('Bearer good'))
  keys.replace(['better'])
  t.notOk(keys.accepts('Bearer good'))
})
