import t, { type Test } from 'tap'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { LegacyFiles } from '../../src/legacy/files.js'
import { fileLocation, isPrivateAddress } from '../../src/legacy/file-hosts.js'
import { multipart } from '../../src/legacy/multipart.js'
import { systemClock } from '../../src/ops/clock.js'
import type { LegacyChannelId } from '../../src/protocol/ids.js'

const CHANNEL = 'legacy_1' as LegacyChannelId
const NO_ABORT = new AbortController().signal

interface Asked { readonly method: string; readonly path: string; readonly headers: IncomingMessage['headers']; readonly body: string }

async function connector(t: Test, answer: (request: IncomingMessage, response: ServerResponse, body: string) => void, hosts = { allowed: [] as string[], allowPrivate: false }) {
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8')
      asked.push({ method: request.method ?? '', path: request.url ?? '', headers: request.headers, body })
      answer(request, response, body)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const files = new LegacyFiles({ endpoint: { baseUrl: `http://127.0.0.1:${port}/prefix`, apiKey: 'the-key', ca: null }, hosts, clock: systemClock() })
  t.teardown(async () => {
    await files.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { files, asked, port }
}

async function text(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

const upload = (body: string) => ({ body: Readable.from([Buffer.from(body)]), byteSize: Buffer.byteLength(body), filename: 'plan "1".pdf', mimeType: 'application/pdf' })

t.test('a relative URL is under the Base URL, and the key goes with it', async (t) => {
  const { files, asked } = await connector(t, (_request, response) => response.writeHead(200, { 'content-type': 'image/png' }).end('bytes'))
  const got = await files.download('/media/refs/abc', NO_ABORT)
  t.ok(got.ok)
  if (!got.ok) return
  t.equal(await text(got.value.body), 'bytes')
  t.match(asked, [{ method: 'GET', path: '/prefix/media/refs/abc', headers: { authorization: 'Bearer the-key' } }])
})

t.test('a failed answer tells its status and nothing of its body', async (t) => {
  const secret = 'Get https://platform.example/bot7000001:AAinvented/getFile: timeout'
  for (const [status, retry] of [[500, true], [503, true], [404, false], [403, false], [302, true]] as const) {
    const { files } = await connector(t, (_request, response) => response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end(secret))
    const got = await files.download('/media/refs/abc', NO_ABORT)
    t.strictSame(got, { ok: false, error: { code: `http_${status}`, retry } })
  }
})

t.test('another host is asked only when it is listed and not private', async (t) => {
  const refused = (url: string, allowed: string[] = [], allowPrivate = false): string => {
    const at = fileLocation(url, 'http://connector.example:8080/prefix', { allowed, allowPrivate })
    return 'refused' in at ? at.refused : `${at.own ? 'own' : 'foreign'} ${at.url.href}`
  }
  t.equal(refused('https://cdn.example/x'), 'file_host_not_allowed')
  t.equal(refused('https://cdn.example/x', ['CDN.example']), 'foreign https://cdn.example/x')
  t.equal(refused('http://connector.example:8080/prefix/files/refs/x'), 'own http://connector.example:8080/prefix/files/refs/x')
  t.equal(refused('http://connector.example:8080/other/x'), 'file_url_invalid', 'beside the prefix is somebody else')
  t.equal(refused('/../../admin'), 'file_url_invalid')
  t.equal(refused('http://connector.example:9090/x'), 'file_host_not_allowed', 'another port is another host')
  t.equal(refused('//cdn.example/x'), 'file_url_invalid')
  t.equal(refused('file:///etc/passwd'), 'file_url_invalid')
  t.equal(refused('http://user:secret@cdn.example/x', ['cdn.example']), 'file_url_invalid')
  for (const host of ['127.0.0.1', '10.1.2.3', '169.254.169.254', '[::1]', '[::ffff:10.0.0.1]']) {
    t.equal(refused(`http://${host}/x`, [host.replace(/[[\]]/g, '')]), 'file_host_not_allowed', host)
  }
  t.match(refused('http://10.1.2.3/x', ['10.1.2.3'], true), /^foreign/)
  for (const address of ['192.168.1.1', '100.64.0.1', 'fd00::1', 'fe80::1', '0.0.0.0', '::', '::ffff:127.0.0.1', 'nonsense']) t.ok(isPrivateAddress(address), address)
  for (const address of ['8.8.8.8', '2606:4700::1111']) t.notOk(isPrivateAddress(address), address)
})

t.test('a listed name that resolves to a private address is refused after DNS', async (t) => {
  const { files, port, asked } = await connector(t, (_request, response) => response.end('inside'), { allowed: ['localhost'], allowPrivate: false })
  const got = await files.download(`http://localhost:${port}/x`, NO_ABORT)
  t.match(got, { ok: false, error: { code: 'EPRIVATE', retry: false } })
  t.strictSame(asked, [])
  const open = await connector(t, (_request, response) => response.end('inside'), { allowed: ['localhost'], allowPrivate: true })
  const allowed = await open.files.download(`http://localhost:${open.port}/x`, NO_ABORT)
  t.ok(allowed.ok)
  if (allowed.ok) t.equal(await text(allowed.value.body), 'inside')
  t.equal(open.asked[0]?.headers.authorization, undefined, 'the key goes to the connector alone')
})

t.test('an upload is one multipart body with its length, the fields first, for the channel', async (t) => {
  const { files, asked } = await connector(t, (_request, response) => response.writeHead(200).end('{"media_ref":"media_1"}'))
  t.strictSame(await files.upload('/media/uploads', CHANNEL, upload('%PDF'), { recipient_ref: 'ann', reply_token: 'ctx' }, NO_ABORT), { ok: true, value: 'media_1' })
  const [request] = asked
  t.match(request, { method: 'POST', path: '/prefix/media/uploads', headers: { 'x-xagent-connector-channel-id': CHANNEL, authorization: 'Bearer the-key' } })
  t.equal(Number(request?.headers['content-length']), Buffer.byteLength(request?.body ?? ''))
  t.match(request?.body, /name="recipient_ref"\r\n\r\nann\r\n[\s\S]*name="reply_token"\r\n\r\nctx\r\n[\s\S]*name="file"; filename="plan %221%22\.pdf"\r\nContent-Type: application\/pdf\r\n\r\n%PDF\r\n--/)
})

t.test('what an upload fails with, and whether trying again helps', async (t) => {
  for (const [status, body, expected] of [
    [413, '', { code: 'http_413', retry: false }], [415, '', { code: 'http_415', retry: false }], [429, '', { code: 'http_429', retry: true }],
    [500, 'token', { code: 'http_500', retry: true }], [200, '{"ok":true}', { code: 'upload_answer_invalid', retry: false }], [200, 'no json', { code: 'upload_answer_invalid', retry: false }],
  ] as const) {
    const { files } = await connector(t, (_request, response) => response.writeHead(status).end(body))
    t.strictSame(await files.upload('/files/uploads', CHANNEL, upload('x'), {}, NO_ABORT), { ok: false, error: expected })
  }
  const { files } = await connector(t, (_request, response) => response.socket?.destroy())
  t.match(await files.upload('/files/uploads', CHANNEL, upload('x'), {}, NO_ABORT), { ok: false, error: { retry: true } })
})

t.test('a multipart body is as long as it says', async (t) => {
  const body = multipart({ ...upload('päckchen'), filename: 'a\r\nb"c' }, { field: 'wért' })
  const written = await text(body.stream)
  t.equal(Buffer.byteLength(written), body.byteSize)
  t.notMatch(written, /filename="a\r\n/)
})
