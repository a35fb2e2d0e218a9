import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { UndiciLegacyHttp, type LegacyHttpOptions } from '../../src/legacy/http.js'
import { systemClock } from '../../src/ops/clock.js'
import { ManualClock } from '../helper/manual-clock.js'

interface Site {
  readonly http: UndiciLegacyHttp
  readonly requests: IncomingMessage[]
}

interface Teardown {
  teardown(end: () => unknown): void
}

async function site(t: Teardown, listener: RequestListener, options: Partial<LegacyHttpOptions> & { prefix?: string } = {}): Promise<Site> {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    listener(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { prefix = '', ...rest } = options
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`
  const http = new UndiciLegacyHttp({ endpoint: { baseUrl, apiKey: 'key-of-the-connector', ca: null }, clock: systemClock(), ...rest })
  t.teardown(async () => {
    await http.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { http, requests }
}

const SECRET = 'bot7000001:secret-token'

t.test('fetches Card, Skill and health under the Base URL\'s prefix, with the key', async (t) => {
  const { http, requests } = await site(t, (request, response) => {
    response.end(request.url === '/some/prefix/skill.md' ? '# Skill' : '{"status":"ok"}')
  }, { prefix: '/some/prefix/' })
  t.same(await http.card(), { ok: true, value: { status: 'ok' } })
  t.same(await http.skill(), { ok: true, value: '# Skill' })
  t.same(await http.health(), { ok: true, value: { status: 'ok' } })
  t.same(requests.map(({ url }) => url), ['/some/prefix/connector-card.json', '/some/prefix/skill.md', '/some/prefix/health'])
  for (const { headers } of requests) t.equal(headers.authorization, 'Bearer key-of-the-connector')
})

for (const status of [204, 404]) {
  t.test(`a connector that answers ${status} has no Skill`, async (t) => {
    const { http } = await site(t, (_request, response) => response.writeHead(status).end())
    t.same(await http.skill(), { ok: true, value: null })
  })
}

for (const [status, code] of [[401, 'connector_unauthorized'], [403, 'connector_unauthorized'], [500, 'connector_http_status'], [503, 'connector_http_status']] as const) {
  t.test(`HTTP ${status} is ${code}, and nothing of its body is told`, async (t) => {
    const { http } = await site(t, (_request, response) => response.writeHead(status).end(`{"error":"${SECRET}"}`))
    for (const result of [await http.card(), await http.skill(), await http.health()]) {
      t.match(result, { ok: false, error: { code, message: `HTTP ${status}` } })
    }
  })
}

t.test('a redirect is not followed', async (t) => {
  const { http, requests } = await site(t, (_request, response) => response.writeHead(302, { location: '/elsewhere' }).end())
  t.match(await http.card(), { ok: false, error: { code: 'connector_http_status', message: 'HTTP 302' } })
  t.equal(requests.length, 1)
})

t.test('a body that is no JSON object is refused without telling it', async (t) => {
  for (const body of [`not JSON ${SECRET}`, '[]', '"text"', 'null', '', Buffer.from([0x7b, 0xff, 0x7d])]) {
    const { http } = await site(t, (_request, response) => response.end(body))
    const result = await http.card()
    t.match(result, { ok: false, error: { code: 'connector_body_invalid' } })
    t.notMatch(JSON.stringify(result), 'secret')
  }
})

t.test('a Card of 1 MiB passes, a larger one is refused', async (t) => {
  const card = (bytes: number): string => `{"pad":"${'x'.repeat(bytes - 10)}"}`
  const { http } = await site(t, (_request, response) => response.end(card(1_048_576)))
  t.match(await http.card(), { ok: true })
  const larger = await site(t, (_request, response) => response.end(card(1_048_577)))
  t.match(await larger.http.card(), { ok: false, error: { code: 'connector_body_too_large' } })
})

t.test('a Skill larger than 256 KiB is refused', async (t) => {
  const { http } = await site(t, (_request, response) => response.end('x'.repeat(262_145)))
  t.match(await http.skill(), { ok: false, error: { code: 'connector_body_too_large' } })
})

t.test('a connector that is away is unreachable, by code', async (t) => {
  const http = new UndiciLegacyHttp({ endpoint: { baseUrl: 'http://127.0.0.1:1', apiKey: null, ca: null }, clock: systemClock() })
  t.teardown(() => http.close())
  t.same(await http.card(), { ok: false, error: { code: 'connector_unreachable', message: 'ECONNREFUSED' } })
})

t.test('an answer that trickles is given up as a whole', async (t) => {
  const clock = new ManualClock()
  const { http } = await site(t, (_request, response) => {
    response.write('{"status":')
    setImmediate(() => clock.advance(20_000))
  }, { clock })
  t.match(await http.card(), { ok: false, error: { code: 'connector_timeout' } })
  t.equal(clock.pending, 0)
})

t.test('a connector that never answers runs into the timeout', async (t) => {
  const { http } = await site(t, () => {}, { stepTimeoutMs: 50 })
  t.match(await http.card(), { ok: false, error: { code: 'connector_timeout' } })
})
