import t from 'tap'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fetch as plainFetch } from 'undici'
import { err, ok, type Result } from '../../src/protocol/errors.js'
import type { ChannelId, RouteName } from '../../src/protocol/ids.js'
import type { StoredFile } from '../../src/files/file-store.js'
import { byteRange } from '../../src/xagent/byte-range.js'
import { facts, pieces, taken } from '../files/store-rig.js'
import { until } from '../helper/stand.js'
import { FakeRoute } from './fake-route.js'
import { fileListening, form, rawRequest } from './file-listening.js'

t.test('what was uploaded is served, with and without the path prefix, to whoever knows the reference', async (t) => {
  const { upload, http } = await fileListening(t)
  const { json } = await upload(form('hello', '报告.txt'))
  for (const url of [`${http}/files/refs/${json['file_ref']}`, `${http}/telegram/files/refs/${json['file_ref']}`]) {
    const response = await fetch(url)
    t.equal(response.status, 200)
    t.equal(await response.text(), 'hello')
    t.match(Object.fromEntries(response.headers), {
      'content-type': 'text/plain', 'content-length': '5', 'content-disposition': 'attachment; filename="__.txt"; filename*=UTF-8\'\'%E6%8A%A5%E5%91%8A.txt',
      'x-content-type-options': 'nosniff', 'cache-control': 'private, no-store', 'accept-ranges': 'bytes', etag: /^"[0-9a-f]{64}"$/,
    })
  }
})

t.test('HEAD names the length and sends nothing', async (t) => {
  const { store, http } = await fileListening(t)
  const { ref } = taken(await store.receive(pieces('hello'), facts()))
  const response = await fetch(`${http}/files/refs/${ref}`, { method: 'HEAD' })
  t.equal(response.status, 200)
  t.equal(response.headers.get('content-length'), '5')
  t.equal(await response.text(), '')
  t.equal((await fetch(`${http}/files/refs/${store.newRef()}`, { method: 'HEAD' })).status, 404)
})

t.test('one range of bytes is served as such: 206, 416', async (t) => {
  const { store, http } = await fileListening(t)
  const { ref, sha256 } = taken(await store.receive(pieces('0123456789'), facts()))
  const ask = async (headers: Record<string, string>) => {
    const response = await fetch(`${http}/files/refs/${ref}`, { headers })
    return [response.status, response.headers.get('content-range'), response.status === 416 ? '' : await response.text()]
  }
  t.strictSame(await ask({ range: 'bytes=2-4' }), [206, 'bytes 2-4/10', '234'])
  t.strictSame(await ask({ range: 'bytes=7-' }), [206, 'bytes 7-9/10', '789'])
  t.strictSame(await ask({ range: 'bytes=-3' }), [206, 'bytes 7-9/10', '789'])
  t.strictSame(await ask({ range: 'bytes=0-99' }), [206, 'bytes 0-9/10', '0123456789'])
  t.strictSame(await ask({ range: 'bytes=10-' }), [416, 'bytes */10', ''])
  t.strictSame(await ask({ range: 'bytes=1-2,4-5' }), [200, null, '0123456789'])
  t.strictSame(await ask({ range: 'bytes=2-4', 'if-range': `"${sha256}"` }), [206, 'bytes 2-4/10', '234'])
  t.strictSame(await ask({ range: 'bytes=2-4', 'if-range': '"other"' }), [200, null, '0123456789'])
  const head = await fetch(`${http}/files/refs/${ref}`, { method: 'HEAD', headers: { range: 'bytes=2-4' } })
  t.strictSame([head.status, head.headers.get('content-length')], [206, '3'])
})

t.test('ranges (RFC 9110 §14)', async (t) => {
  const rows: readonly (readonly [string, ReturnType<typeof byteRange>])[] = [
    ['', 'all'], ['bytes=', 'all'], ['bytes=-', 'all'], ['bytes=a-b', 'all'], ['items=0-1', 'all'], ['bytes=5-2', 'all'], ['bytes=0-0', { start: 0, end: 0 }],
    ['bytes= 1 - 2 ', { start: 1, end: 2 }], ['bytes=-100', { start: 0, end: 9 }], ['bytes=-0', 'unsatisfiable'], ['bytes=9-9', { start: 9, end: 9 }],
    ['bytes=10-10', 'unsatisfiable'], [`bytes=0-${'9'.repeat(30)}`, 'all'],
  ]
  for (const [header, expected] of rows) t.strictSame(byteRange(header, 10), expected, header)
})

t.test('404 for what is unknown or expired, 403 for another channel or connector', async (t) => {
  const made = await fileListening(t)
  const { store, http } = made
  const { ref } = taken(await store.receive(pieces('x'), facts()))
  const foreign = taken(await store.receive(pieces('x'), facts({ route: 'other' as RouteName, channelId: 'cch_9' as ChannelId })))
  const status = async (path: string, channel?: string) =>
    (await fetch(http + path, { headers: channel === undefined ? {} : { 'x-xagent-connector-channel-id': channel } })).status
  t.equal(await status(`/files/refs/${store.newRef()}`), 404)
  t.equal(await status('/files/refs/..%2f..%2fetc%2fpasswd'), 404)
  t.equal(await status(`/files/refs/${ref}.json`), 404)
  t.equal(await status(`/files/refs/${ref}`, 'cch_1'), 200)
  t.equal(await status(`/files/refs/${ref}`, 'cch_9'), 403)
  t.equal(await status(`/files/refs/${foreign.ref}`), 200)
  t.equal(await status(`/telegram/files/refs/${foreign.ref}`), 403)
  t.equal(await status(`/nobody/files/refs/${ref}`), 404)
  made.now += 3_600_000
  t.equal(await status(`/files/refs/${ref}`), 404)
})

t.test('bytes that have gone since are a 404, not an empty file', async (t) => {
  const { store, http, dir } = await fileListening(t)
  const { ref } = taken(await store.receive(pieces('x'), facts()))
  rmSync(join(dir, ref))
  t.equal((await fetch(`${http}/files/refs/${ref}`)).status, 404)
})

t.test('a remembered file is fetched when it is asked for; 404 when it cannot be had', async (t) => {
  const waiting: ((result: Result<StoredFile>) => void)[] = []
  const { store, http } = await fileListening(t, { fetchRemote: () => new Promise((resolve) => waiting.push(resolve)) })
  const { ref } = await store.remember(facts({ kind: 'inbound' }), { url: 'u' })
  const asked = [fetch(`${http}/files/refs/${ref}`), fetch(`${http}/files/refs/${ref}`, { method: 'HEAD' })]
  await until(() => waiting.length === 2, 'it is fetched')
  for (const answer of waiting.splice(0)) answer(err({ code: 'http_404', message: 'a secret of the connector' }))
  for (const answer of await Promise.all(asked)) {
    t.equal(answer.status, 404)
    t.notMatch(await answer.text(), /secret/)
  }
  const again = fetch(`${http}/files/refs/${ref}`)
  await until(() => waiting.length === 1, 'it is fetched anew')
  waiting[0]?.(ok(taken(await store.receive(pieces('bytes'), facts(), { ref }))))
  t.equal(await (await again).text(), 'bytes')
  t.equal(await (await fetch(`${http}/files/refs/${ref}`)).text(), 'bytes')
  t.equal(waiting.length, 1, 'its bytes are here now')
})

t.test('a client that leaves while its file is fetched is no trouble', async (t) => {
  const waiting: ((result: Result<StoredFile>) => void)[] = []
  const { store, port, http, events } = await fileListening(t, { fetchRemote: () => new Promise((resolve) => waiting.push(resolve)) })
  const { ref } = await store.remember(facts({ kind: 'inbound' }), 'u')
  const socket = await rawRequest(port, `GET /files/refs/${ref} HTTP/1.1\r\nhost: x\r\n\r\n`)
  await until(() => waiting.length > 0, 'it is fetched')
  socket.resetAndDestroy()
  await fetch(`${http}/telegram/skill.md`)
  waiting[0]?.(ok(taken(await store.receive(pieces('bytes'), facts(), { ref }))))
  t.equal(await (await fetch(`${http}/files/refs/${ref}`)).text(), 'bytes')
  t.strictSame(events, [])
})

t.test('a bug while a file is fetched is a 500', async (t) => {
  const { store, http, events } = await fileListening(t, { fetchRemote: async () => { throw new Error('invented bug') } })
  const { ref } = await store.remember(facts({ kind: 'inbound' }), 'u')
  t.equal((await fetch(`${http}/files/refs/${ref}`)).status, 500)
  t.match(events, [{ kind: 'failed', error: { message: 'invented bug' } }])
})

t.test('a reader that takes nothing blocks nobody, and gets every byte once it reads', async (t) => {
  const size = 20_000_000
  const { store, port, http, events } = await fileListening(t, { store: { maxFileBytes: size, maxTotalBytes: 2 * size } })
  const chunk = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 7) % 251))
  const { ref } = taken(await store.receive(pieces(...Array.from({ length: 200 }, () => chunk)), facts()))
  const slow = await Promise.all([1, 2, 3].map(() => rawRequest(port, `GET /files/refs/${ref} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)))
  for (const socket of slow) socket.pause()
  const response = await plainFetch(`${http}/files/refs/${ref}`)
  t.equal((await response.arrayBuffer()).byteLength, size)
  t.equal((await fetch(`${http}/telegram/skill.md`)).status, 200)
  const [first, second, third] = slow
  first?.destroy()
  second?.resetAndDestroy()
  const parts: Buffer[] = []
  third?.on('data', (part: Buffer) => {
    parts.push(part)
    if (parts.reduce((sum, { length }) => sum + length, 0) > size) third.end()
  })
  third?.resume()
  if (third !== undefined) await once(third, 'close')
  const text = Buffer.concat(parts)
  const body = text.subarray(text.indexOf('\r\n\r\n') + 4)
  t.equal(body.length, size)
  t.ok(body.equals(Buffer.concat(Array.from({ length: 200 }, () => chunk))))
  t.strictSame(events, [])
})

t.test('without a file store both endpoints say so', async (t) => {
  const { http } = await import('./fake-route.js').then(({ listening }) => listening(t))
  t.equal((await fetch(`${http}/files/refs/file_x`)).status, 503)
  t.equal(new FakeRoute().ownsChannel('x'), null)
})
