import t from 'tap'
import { once } from 'node:events'
import { KEY } from './fake-route.js'
import { until } from '../helper/stand.js'
import { FORM, TAIL, answerTo, fileListening, form, head, rawRequest, HEADERS } from './file-listening.js'

t.test('stages a file for its channel and answers what PROTOCOL says', async (t) => {
  const { upload, store, now } = await fileListening(t)
  const data = form('hello', 'Отчёт "1".txt')
  data.append('recipient_ref', 'somebody')
  data.append('reply_token', 't'.repeat(10_000))
  const { status, json } = await upload(data)
  t.equal(status, 200)
  t.strictSame(json, { file_ref: json['file_ref'], file_type: 'file', filename: json['filename'], byte_size: 5, expires_at: now + 3_600_000 })
  t.match(json['filename'], /^Отчёт .*1.*\.txt$/)
  t.match(store.find(String(json['file_ref'])), { route: 'telegram', channelId: 'cch_1', kind: 'staged', mimeType: 'text/plain' })
})

t.test('fields before the file, other files and unknown fields are no trouble', async (t) => {
  const { upload, store } = await fileListening(t)
  const data = new FormData()
  data.append('reply_token', 'x')
  data.append('other', new Blob(['not this one']), 'b.txt')
  data.append('file', new Blob(['this one']), 'a.txt')
  data.append('colour', 'red')
  const { status, json } = await upload(data)
  t.equal(status, 200)
  t.equal(json['byte_size'], 8)
  t.strictSame(store.usage, { staged: 8, inbound: 0 })
})

t.test('takes a body of unknown length', async (t) => {
  const { begin } = await fileListening(t)
  const begun = begin({ ...FORM, 'transfer-encoding': 'chunked' })
  for (const piece of [head('form-data; name="file"; filename="a.txt"'), 'he', 'llo', TAIL]) begun.write(piece)
  begun.end()
  t.match(JSON.parse((await answerTo(begun)).body), { byte_size: 5, filename: 'a.txt' })
})

t.test('needs the key, a channel header, and a channel of this connector', async (t) => {
  const { http, names } = await fileListening(t)
  const status = async (headers: Record<string, string>) => {
    const response = await fetch(`${http}/telegram/files/uploads`, { method: 'POST', body: form('x'), headers })
    return [response.status, ((await response.json()) as { error: string }).error]
  }
  t.strictSame(await status({}), [401, 'unauthorized'])
  t.strictSame(await status({ authorization: `Bearer ${KEY}` }), [400, 'connector_channel_id_required'])
  t.strictSame(await status({ ...HEADERS, 'x-xagent-connector-channel-id': 'cch_2' }), [404, 'unknown_channel'])
  t.strictSame(names(), [])
})

const WRONG: readonly (readonly [what: string, type: string, body: string, code: string])[] = [
  ['no form', 'application/json', '{}', 'multipart_invalid'],
  ['no boundary', 'multipart/form-data', 'x', 'multipart_invalid'],
  ['another kind of form', 'application/x-www-form-urlencoded', 'file=x', 'multipart_invalid'],
  ['nothing in it', FORM['content-type'], '--xx--\r\n', 'file_missing'],
  ['no such boundary in it', FORM['content-type'], 'hello', 'multipart_invalid'],
  ['no file', FORM['content-type'], `${head('form-data; name="reply_token"')}x${TAIL}`, 'file_missing'],
  ['a file of another name', FORM['content-type'], `${head('form-data; name="files"; filename="a"')}x${TAIL}`, 'file_missing'],
  ['a file without a name of its own', FORM['content-type'], `${head('form-data; name="file"')}x${TAIL}`, 'filename_missing'],
  ['a file without a name of its own, with a type', FORM['content-type'], `${head('form-data; name="file"', 'Content-Type: application/octet-stream\r\n')}x${TAIL}`, 'filename_missing'],
  ['an empty name', FORM['content-type'], `${head('form-data; name="file"; filename=""')}x${TAIL}`, 'filename_missing'],
  ['an empty file', FORM['content-type'], `${head('form-data; name="file"; filename="a"')}${TAIL}`, 'file_empty'],
  ['two files', FORM['content-type'], `${head('form-data; name="file"; filename="a"')}x\r\n${head('form-data; name="file"; filename="b"')}y${TAIL}`, 'multipart_invalid'],
  ['no end', FORM['content-type'], `${head('form-data; name="file"; filename="a"')}xxxxxxxx`, 'multipart_invalid'],
  ['no end after the file', FORM['content-type'], `${head('form-data; name="file"; filename="a"')}x\r\n${head('form-data; name="b"')}y`, 'multipart_invalid'],
  ['a field that is far too long', FORM['content-type'], `${head('form-data; name="reply_token"')}${'x'.repeat(20_000)}\r\n${head('form-data; name="file"; filename="a"')}x${TAIL}`, 'multipart_invalid'],
  ['far too many fields', FORM['content-type'], `${Array.from({ length: 30 }, (_, i) => `${head(`form-data; name="f${i}"`)}x\r\n`).join('')}--xx--\r\n`, 'multipart_invalid'],
]

t.test('a form that is wrong is answered 400 with a code, and leaves nothing', async (t) => {
  const { begin, names, store, upload } = await fileListening(t)
  for (const [what, type, body, code] of WRONG) {
    const begun = begin({ 'content-type': type })
    begun.end(body)
    const answer = await answerTo(begun)
    t.equal(answer.status, 400, what)
    t.match(JSON.parse(answer.body), { error: code }, what)
    t.strictSame(names(), [], what)
  }
  t.strictSame(store.usage, { staged: 0, inbound: 0 })
  t.equal((await upload(form('still works'))).status, 200)
})

t.test('names that try to be paths stay names', async (t) => {
  const { begin, dir, names } = await fileListening(t)
  const expected: readonly (readonly [string, string])[] = [
    ['filename="../../../etc/passwd"', 'passwd'], ['filename="/etc/passwd"', 'passwd'], ['filename="C:\\\\temp\\\\x.exe"', 'x.exe'], ['filename=".."', 'file.txt'],
    ['filename="a/../.."', 'file.txt'], ['filename*=UTF-8\'\'%2e%2e%2f%E6%8A%A5.txt', '报.txt'], ['filename="%2e%2e%2fx"', '%2e%2e%2fx'], ['filename="x\u202efdp.exe"', 'xfdp.exe'],
  ]
  for (const [parameter, filename] of expected) {
    const begun = begin(FORM)
    begun.end(`${head(`form-data; name="file"; ${parameter}`, 'Content-Type: text/plain\r\n')}x${TAIL}`)
    t.match(JSON.parse((await answerTo(begun)).body), { filename }, parameter)
  }
  t.equal(names().length, 2 * expected.length)
  t.ok(names().every((name) => /^file_[\w-]{32}(\.json)?$/.test(name)), dir)
})

t.test('a length that is too large is refused before the body: 413, then the connection is closed', async (t) => {
  const { port, names } = await fileListening(t, { store: { maxFileBytes: 1_000 } })
  const lines = Object.entries({ host: 'x', ...HEADERS, ...FORM, 'content-length': '2000000' }).map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const socket = await rawRequest(port, `POST /telegram/files/uploads HTTP/1.1\r\n${lines}\r\n`)
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await once(socket, 'end')
  t.match(text, /^HTTP\/1\.1 413 .*connection: close.*file_too_large/s)
  t.strictSame(names(), [])
})

t.test('a file that is too large is refused while it comes, and the answer arrives', async (t) => {
  const { begin, names, upload } = await fileListening(t, { store: { maxFileBytes: 1_000 } })
  t.match(await upload(form('x'.repeat(1_001))), { status: 413, json: { error: 'file_too_large' } })
  // More than any socket's buffer: the client is still writing when it is refused.
  const begun = begin({ ...FORM, 'transfer-encoding': 'chunked' })
  const writing = setInterval(() => begun.write(Buffer.alloc(65_536)), 1)
  t.teardown(() => clearInterval(writing))
  begun.write(head('form-data; name="file"; filename="a"'))
  const answered = await answerTo(begun)
  t.equal(answered.status, 413)
  t.match(answered.headers, { connection: 'close' })
  t.strictSame(names(), [])
  t.match(await upload(form('x'.repeat(1_000))), { status: 200 })
})

t.test('bytes around the file are bounded too', async (t) => {
  const { begin, names } = await fileListening(t, { store: { maxFileBytes: 1_000 } })
  const begun = begin({ ...FORM, 'transfer-encoding': 'chunked' })
  begun.write(head('form-data; name="other"; filename="b"'))
  for (let i = 0; i < 10; i += 1) begun.write(Buffer.alloc(65_536))
  t.equal((await answerTo(begun)).status, 413)
  t.strictSame(names(), [])
})

t.test('a full store answers 507, before and while the body comes', async (t) => {
  const { begin, upload, names } = await fileListening(t, { store: { maxTotalBytes: 1_000 } })
  t.match(await upload(form('x'.repeat(1_001))), { status: 507, json: { error: 'file_store_full' } })
  t.match(await upload(form('x'.repeat(900_000))), { status: 507, json: { error: 'file_store_full' } })
  const begun = begin()
  begun.end()
  await answerTo(begun)
  t.strictSame(names(), [])
})

t.test('a body without a length is refused: 411', async (t) => {
  const { port } = await fileListening(t)
  const lines = Object.entries({ host: 'x', ...HEADERS, ...FORM }).map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const socket = await rawRequest(port, `POST /telegram/files/uploads HTTP/1.1\r\n${lines}\r\n`)
  const [data] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  t.match(data.toString(), /^HTTP\/1\.1 411 /)
})

t.test('an upload that is broken off leaves nothing, wherever that is', async (t) => {
  const { begin, names, dir, store, upload } = await fileListening(t)
  for (const pieces of [[], [head('form-data; name="file"; filename="a"')], [head('form-data; name="file"; filename="a"'), 'x'.repeat(200_000)]]) {
    const begun = begin({ ...FORM, 'content-length': '500000' })
    begun.flushHeaders()
    for (const piece of pieces) begun.write(piece)
    if (pieces.length > 1) await until(() => names().length > 0, 'the file is being received')
    begun.destroy()
    await until(() => names().length === 0, 'nothing is left')
  }
  t.equal(store.freeBytes, 10_000_000, dir)
  t.equal((await upload(form('x'))).status, 200)
})

t.test('a store that closes lets nobody wait', async (t) => {
  const { begin, names, store } = await fileListening(t)
  const begun = begin({ ...FORM, 'content-length': '500000' })
  begun.write(head('form-data; name="file"; filename="a"'))
  begun.write('x'.repeat(1_000))
  await until(() => names().length > 0, 'the file is being received')
  await store.close()
  t.equal((await answerTo(begun)).status, 503)
  t.strictSame(names(), [])
})
