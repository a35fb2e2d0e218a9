import t from 'tap'
import fc from 'fast-check'
import { checkKey, compareKeys } from '../../src/store/key.js'
import { SortedRecords } from '../../src/store/sorted-records.js'

const key = fc.string({ unit: 'binary', maxLength: 6 }).filter((text) => text.isWellFormed())
const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

t.test('keys sort by the bytes of their UTF-8 form', async () => {
  fc.assert(fc.property(key, key, (a, b) => Math.sign(compareKeys(a, b)) === byBytes(a, b)))
  fc.assert(fc.property(key, key, key, (shared, a, b) => Math.sign(compareKeys(shared + a, shared + b)) === byBytes(shared + a, shared + b)))
})

t.test('a character above U+FFFF sorts behind every other one, unlike its code units', async (t) => {
  t.ok(compareKeys('\uffee', '😀') < 0)
  t.ok('\uffee' > '😀')
})

t.test('a key is well-formed text of 1 to 1,500 bytes', async (t) => {
  for (const good of ['k', 'k'.repeat(1_500), '中'.repeat(500), '\0']) t.doesNotThrow(() => checkKey(good))
  for (const bad of ['', 'k'.repeat(1_501), '中'.repeat(501), 'half \ud83d']) t.throws(() => checkKey(bad), RangeError)
})

t.test('records are found from any key on, one that is not there too', async () => {
  fc.assert(fc.property(fc.uniqueArray(key, { maxLength: 30 }), key, (keys, start) => {
    const records = new SortedRecords()
    for (const each of keys) records.put(each, each)
    const expected = keys.filter((each) => byBytes(each, start) >= 0).sort(byBytes)
    return JSON.stringify([...records.from(start)].map((record) => record.key)) === JSON.stringify(expected)
  }))
})
