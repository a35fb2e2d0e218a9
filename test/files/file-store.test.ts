import t from 'tap'
import { newPartName } from '../../src/files/part-name.js'
import { newRef } from '../../src/files/stored-file.js'
import { createHash } from 'node:crypto'
import { statSync, truncateSync, writeFileSync, rmSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { isRemote } from '../../src/files/file-store.js'
import type { ChannelId, RouteName } from '../../src/protocol/ids.js'
import { HOUR, ManualSource, contentOf, facts, pieces, rig, taken } from './store-rig.js'

t.test('takes a file and gives it back, whole and in part', async (t) => {
  const { store, now } = await rig(t)
  const file = taken(await store.receive(pieces('hello ', 'world'), facts({ filename: 'hi.txt', claimedMime: 'text/plain' })))
  t.match(file, {
    route: 'telegram', channelId: 'cch_1', kind: 'staged', type: 'file', mimeType: 'text/plain', filename: 'hi.txt', byteSize: 11,
    sha256: createHash('sha256').update('hello world').digest('hex'), expiresAt: now + HOUR,
  })
  const { ref } = file
  t.match(ref, /^file_[\w-]{32}$/)
  t.strictSame(store.find(ref), file)
  t.equal(await contentOf(store, ref), 'hello world')
  t.equal(await contentOf(store, ref, { start: 6, end: 8 }), 'wor')
  t.strictSame(store.usage, { staged: 11, inbound: 0 })
})

t.test('the folder and what is in it is for its owner alone', async (t) => {
  const { store, dir, names } = await rig(t)
  await store.receive(pieces('x'), facts())
  t.equal(statSync(dir).mode & 0o777, 0o700)
  t.equal(statSync(join(dir, 'part')).mode & 0o777, 0o700)
  for (const name of names()) t.equal(statSync(join(dir, name)).mode & 0o777, 0o600, name)
})

t.test('references cannot be guessed, and nothing else is looked up on the disk', async (t) => {
  const { store, dir } = await rig(t)
  const refs = new Set(Array.from({ length: 1_000 }, () => store.newRef()))
  t.equal(refs.size, 1_000)
  writeFileSync(join(dir, '..', 'outside.json'), '{}')
  for (const ref of ['', '.', '../outside', 'file_../../outside', 'file_', `file_${'a'.repeat(33)}`, `file_${'/'.repeat(32)}`]) {
    t.equal(store.find(ref), undefined, ref)
    await t.rejects(contentOf(store, ref), { code: 'ENOENT' })
    await store.remove(ref)
  }
  t.ok(statSync(join(dir, '..', 'outside.json')).isFile())
  await t.rejects(store.receive(pieces('x'), facts(), { ref: '../outside' }), TypeError)
})

t.test('a file above the limit is refused and leaves nothing; the source is let go', async (t) => {
  const { store, names } = await rig(t, { maxFileBytes: 10 })
  const source = Readable.from([Buffer.alloc(6), Buffer.alloc(6), Buffer.alloc(6)])
  t.match(await store.receive(source, facts()), { ok: false, error: { code: 'file_too_large' } })
  t.equal(source.destroyed, true)
  t.match(await store.receive(pieces('12345'), facts(), { maxBytes: 4 }), { ok: false, error: { code: 'file_too_large' } })
  t.match(await store.receive(pieces('1234567890'), facts(), { maxBytes: 99 }), { ok: true })
  t.equal(names().length, 2)
  t.strictSame(store.usage, { staged: 10, inbound: 0 })
})

t.test('a file without a byte is refused', async (t) => {
  const { store, names } = await rig(t)
  t.match(await store.receive(pieces(), facts()), { ok: false, error: { code: 'file_empty' } })
  t.match(await store.receive(pieces('', ''), facts()), { ok: false, error: { code: 'file_empty' } })
  t.strictSame(names(), [])
})

t.test('files that are being received count towards the limit of all, and free it when they fail', async (t) => {
  const { store } = await rig(t, { maxTotalBytes: 10 })
  const source = new ManualSource()
  const abort = new AbortController()
  const first = store.receive(source, facts(), { signal: abort.signal })
  source.give('1234567')
  await source.hungry()
  t.equal(store.freeBytes, 3)
  t.match(await store.receive(pieces('1234'), facts()), { ok: false, error: { code: 'file_store_full' } })
  t.match(await store.receive(pieces('123'), facts({ kind: 'inbound' })), { ok: true })
  t.equal(store.freeBytes, 0)
  abort.abort()
  t.match(await first, { ok: false, error: { code: 'upload_aborted' } })
  t.equal(store.freeBytes, 7)
  t.strictSame(store.usage, { staged: 0, inbound: 3 })
})

t.test('many at once never exceed the limit together', async (t) => {
  const { store, names } = await rig(t, { maxTotalBytes: 1_000 })
  const results = await Promise.all(Array.from({ length: 40 }, (_, i) => store.receive(pieces(...Array.from({ length: 10 }, () => Buffer.alloc(10, i + 1))), facts())))
  const taken = results.filter(({ ok }) => ok).length
  t.ok(taken <= 10)
  t.equal(store.usage.staged, taken * 100)
  t.equal(names().length, taken * 2)
  t.ok(results.every((result) => result.ok || result.error.code === 'file_store_full'))
})

t.test('an aborted file leaves nothing, even while its source gives nothing', async (t) => {
  const { store, names } = await rig(t)
  const source = new ManualSource()
  const abort = new AbortController()
  const result = store.receive(source, facts(), { signal: abort.signal })
  source.give('some')
  await source.hungry()
  t.equal(names().length, 1)
  abort.abort()
  t.match(await result, { ok: false, error: { code: 'upload_aborted' } })
  t.equal(source.ended, true)
  t.strictSame(names(), [])
  t.match(await store.receive(pieces('x'), facts(), { signal: AbortSignal.abort() }), { ok: false, error: { code: 'upload_aborted' } })
  t.strictSame(names(), [])
})

t.test('a source that fails is a value, not an exception', async (t) => {
  const { store, names } = await rig(t)
  const failing = new Readable({ read() { this.destroy(new Error('says the test')) } })
  t.match(await store.receive(failing, facts()), { ok: false, error: { code: 'file_unreadable' } })
  t.strictSame(names(), [])
})

t.test('a folder that is gone is a value too, and told', async (t) => {
  const { store, dir, lines } = await rig(t)
  rmSync(dir, { recursive: true })
  const source = Readable.from([Buffer.from('x')])
  t.match(await store.receive(source, facts()), { ok: false, error: { code: 'file_unreadable' } })
  t.equal(source.destroyed, true)
  t.match(lines, [{ text: 'a file could not be stored' }])
  await t.rejects(store.remember(facts(), 'u'), { code: 'store_unavailable' })
})

t.test('close aborts what is being received; nothing is taken afterwards', async (t) => {
  const { store, names } = await rig(t)
  const source = new ManualSource()
  const result = store.receive(source, facts())
  source.give('some')
  await source.hungry()
  await store.close()
  t.match(await result, { ok: false, error: { code: 'upload_aborted' } })
  t.strictSame(names(), [])
  t.match(await store.receive(pieces('x'), facts()), { ok: false, error: { code: 'upload_aborted' } })
})

t.test('a file ends at its expiry, and the sweep removes it', async (t) => {
  const made = await rig(t)
  const { ref } = taken(await made.store.receive(pieces('x'), facts()))
  made.now += HOUR - 1
  await made.store.sweep()
  t.ok(made.store.find(ref))
  made.now += 1
  t.equal(made.store.find(ref), undefined)
  t.equal(made.names().length, 2)
  await made.store.sweep()
  t.strictSame(made.names(), [])
  t.strictSame(made.store.usage, { staged: 0, inbound: 0 })
})

t.test('the next open finds everything; what has expired meanwhile is removed', async (t) => {
  const made = await rig(t)
  const first = taken(await made.store.receive(pieces('abc'), facts({ filename: 'ä.txt' })))
  made.now += 1_000
  const second = taken(await made.store.receive(pieces('de'), facts({ kind: 'inbound' })))
  const reopened = await made.again()
  t.strictSame(reopened.find(first.ref), first)
  t.strictSame(reopened.usage, { staged: 3, inbound: 2 })
  made.now += HOUR - 1_000
  const later = await made.again()
  t.equal(later.find(first.ref), undefined)
  t.ok(later.find(second.ref))
  t.equal(made.names().length, 2)
})

t.test('damaged sidecars and cut-off bytes are removed and told; what is not ours is left alone', async (t) => {
  const made = await rig(t)
  const refs = await Promise.all(['one', 'two', 'three', 'four', 'five'].map(async (text) => taken(await made.store.receive(pieces(text), facts())).ref))
  const [garbage = '', cut = '', foreign = '', bare = '', whole = ''] = refs
  writeFileSync(join(made.dir, `${garbage}.json`), '{"version":1,')
  truncateSync(join(made.dir, cut), 1)
  writeFileSync(join(made.dir, `${foreign}.json`), readFileSync(join(made.dir, `${whole}.json`)))
  rmSync(join(made.dir, `${bare}.json`))
  writeFileSync(join(made.dir, 'part', 'something'), 'half')
  writeFileSync(join(made.dir, 'notes.json'), 'mine')
  const reopened = await made.again()
  t.strictSame(made.names(), ['notes.json', whole, `${whole}.json`].sort())
  t.strictSame(reopened.usage, { staged: 4, inbound: 0 })
  t.same(made.lines.map(({ fields }) => fields['ref']).sort(), [garbage, cut, foreign].sort())
})

t.test('a remembered file has no bytes until it is given some, and keeps its channel, name and expiry then', async (t) => {
  const made = await rig(t)
  const source = { url: '/media/refs/x', nested: [1, null] }
  const remembered = await made.store.remember(facts({ kind: 'inbound', filename: 'photo.png', claimedMime: 'image/png' }), source, { expiresAt: made.now + 5_000 })
  t.match(made.store.find(remembered.ref), { remote: source, type: 'image', mimeType: 'image/png', filename: 'photo.png', byteSize: 0, expiresAt: made.now + 5_000 })
  t.equal(isRemote(remembered), true)
  t.match((await made.again()).find(remembered.ref), { remote: source })
  made.now += 1_000
  const changed = facts({ filename: null, channelId: 'other' as ChannelId, route: 'other' as RouteName })
  const result = await made.store.receive(pieces('%PDF-1.7\n'), changed, { ref: remembered.ref })
  t.match(result, { ok: true, value: { ref: remembered.ref, channelId: 'cch_1', route: 'telegram', kind: 'inbound', mimeType: 'application/pdf', type: 'file', filename: 'photo.png', byteSize: 9, expiresAt: remembered.expiresAt } })
  const found = made.store.find(remembered.ref)
  t.equal(found !== undefined && isRemote(found), false)
  t.strictSame(made.store.usage, { staged: 0, inbound: 9 })
  t.equal(await contentOf(await made.again(), remembered.ref), '%PDF-1.7\n')
})

t.test('a remembered file stays as it was when its bytes cannot be had', async (t) => {
  const { store, names } = await rig(t)
  const { ref } = await store.remember(facts({ kind: 'inbound' }), 'u')
  t.match(await store.receive(pieces(), facts(), { ref }), { ok: false })
  t.match(store.find(ref), { remote: 'u' })
  t.strictSame(names(), [`${ref}.json`])
  await t.rejects(contentOf(store, ref), { code: 'ENOENT' })
})

t.test('two stores on one folder see each other: files, bytes of remembered ones, removals', async (t) => {
  const made = await rig(t)
  const other = await made.again()
  const file = taken(await made.store.receive(pieces('abc'), facts()))
  const remembered = await made.store.remember(facts({ kind: 'inbound' }), 'u')
  t.strictSame(other.find(file.ref), file)
  t.match(other.find(remembered.ref), { remote: 'u' })
  await made.store.receive(pieces('de'), facts(), { ref: remembered.ref })
  t.match(other.find(remembered.ref), { byteSize: 2 })
  t.strictSame(other.usage, { staged: 3, inbound: 2 })
  await made.store.remove(file.ref)
  await other.sweep()
  t.equal(other.find(file.ref), undefined)
  t.strictSame(other.usage, { staged: 0, inbound: 2 })
  await made.store.receive(pieces('fgh'), facts())
  await other.sweep()
  t.strictSame(other.usage, { staged: 3, inbound: 2 })
})

t.test('opening does not take away what another store on the folder is receiving', async (t) => {
  const made = await rig(t)
  const source = new ManualSource()
  const result = made.store.receive(source, facts())
  source.give('abc')
  await source.hungry()
  const other = await made.again()
  await other.sweep()
  source.end()
  t.equal(other.find(taken(await result).ref)?.byteSize, 3)
})

t.test('a folder that cannot be used is said at open', async (t) => {
  const made = await rig(t)
  writeFileSync(join(made.dir, '..', 'taken'), '')
  await t.rejects(made.again({ dir: join(made.dir, '..', 'taken') }), { code: 'store_unavailable' })
})

t.test('remembered files are bounded, too, and one that takes the place of another needs no further room', async (t) => {
  const { store } = await rig(t, { maxTotalBytes: 10_000 })
  const first = await store.remember(facts({ kind: 'inbound' }), 'u')
  await store.remember(facts({ kind: 'inbound' }), 'v')
  await t.rejects(store.remember(facts({ kind: 'inbound' }), 'w'), { code: 'store_unavailable', message: /max_total_bytes/ })
  await store.remember(facts({ kind: 'inbound' }), 'anew', { ref: first.ref, expiresAt: first.expiresAt })
  t.match(store.find(first.ref), { remote: 'anew', expiresAt: first.expiresAt })
  await store.remove(first.ref)
  t.ok(await store.remember(facts({ kind: 'inbound' }), 'w'))
})

t.test('a store that opens spares bytes whose sidecar a living process is about to put there', async (t) => {
  const { dir, again, names } = await rig(t)
  const [young, orphan] = [newRef(), newRef()]
  for (const ref of [young, orphan]) writeFileSync(join(dir, ref), 'bytes')
  writeFileSync(join(dir, 'part', `${newPartName(young)}.json`), 'its sidecar')
  await again()
  t.ok(names().includes(young))
  t.notOk(names().includes(orphan))
})
