import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { Agent, request } from 'undici'
import { startAdminServer, type AdminServerOptions } from '../../src/ops/admin-server.js'

async function admin(t: Test, changes: Partial<AdminServerOptions> = {}): Promise<string> {
  const server = await startAdminServer({
    host: '127.0.0.1',
    port: 0,
    tls: null,
    readToken: null,
    metrics: { contentType: 'text/plain; version=0.0.4', scrape: async () => 'xagent_gateway_routes_owned 1\n' },
    notReady: () => [],
    onError: (error) => t.fail(String(error)),
    ...changes,
  })
  t.teardown(() => server.close())
  return `${changes.tls ? 'https' : 'http'}://127.0.0.1:${server.port}`
}

t.test('serves metrics, probes and a list of its endpoints', async (t) => {
  const url = await admin(t)
  const metrics = await fetch(`${url}/metrics`)
  t.equal(metrics.status, 200)
  t.equal(metrics.headers.get('content-type'), 'text/plain; version=0.0.4')
  t.equal(await metrics.text(), 'xagent_gateway_routes_owned 1\n')
  t.equal((await fetch(`${url}/livez`)).status, 200)
  t.equal((await fetch(`${url}/readyz?verbose=1`)).status, 200)
  const index = await (await fetch(url)).text()
  for (const path of ['/metrics', '/livez', '/readyz']) t.match(index, path)
})

t.test('is alive but not ready while there are reasons, and says them', async (t) => {
  let reasons: string[] = ['the store cannot be written', 'draining']
  const url = await admin(t, { notReady: async () => reasons })
  const notReady = await fetch(`${url}/readyz`)
  t.equal(notReady.status, 503)
  t.same(await notReady.json(), { ready: false, reasons: ['the store cannot be written', 'draining'] })
  t.equal((await fetch(`${url}/livez`)).status, 200)
  reasons = []
  t.same(await (await fetch(`${url}/readyz`)).json(), { ready: true, reasons: [] })
})

t.test('asks for the read token, except for the probes', async (t) => {
  const url = await admin(t, { readToken: 'invented-token' })
  for (const path of ['/metrics', '/']) {
    const refused = await fetch(url + path, { headers: { authorization: 'Bearer wrong' } })
    t.equal(refused.status, 401, path)
    t.equal(refused.headers.get('www-authenticate'), 'Bearer')
    t.equal((await fetch(url + path, { headers: { authorization: 'Bearer invented-token' } })).status, 200, path)
  }
  for (const path of ['/livez', '/readyz']) t.equal((await fetch(url + path)).status, 200, path)
})

t.test('reads only: GET and HEAD', async (t) => {
  const url = await admin(t)
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    const refused = await fetch(`${url}/livez`, { method, ...(method === 'POST' && { body: 'GET /metrics HTTP/1.1' }) })
    t.equal(refused.status, 405, method)
    t.equal(refused.headers.get('allow'), 'GET, HEAD')
  }
  const head = await fetch(`${url}/metrics`, { method: 'HEAD' })
  t.equal(head.status, 200)
  t.equal(await head.text(), '')
  t.equal((await fetch(`${url}/nothing`)).status, 404)
  t.equal((await fetch(`${url}/api/dead-letters`)).status, 404)
})

t.test('answers 500 when metrics cannot be read, reports why, and tells the asker nothing', async (t) => {
  const errors: unknown[] = []
  const url = await admin(t, { metrics: { contentType: 'text/plain', scrape: () => Promise.reject(new Error('invented secret')) }, onError: (error) => errors.push(error) })
  const failed = await fetch(`${url}/metrics`)
  t.equal(failed.status, 500)
  t.notMatch(await failed.text(), 'secret')
  t.match(errors, [{ message: 'invented secret' }])
  t.equal((await fetch(`${url}/livez`)).status, 200)
})

t.test('serves HTTPS', async (t) => {
  const file = (name: string): string => fileURLToPath(new URL(`../xagent/tls/${name}`, import.meta.url))
  const url = await admin(t, { tls: { cert: file('cert.pem'), key: file('key.pem') } })
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
  t.teardown(() => dispatcher.close())
  const { statusCode, body } = await request(`${url}/livez`, { dispatcher })
  t.equal(statusCode, 200)
  await body.dump()
  await t.rejects(admin(t, { tls: { cert: file('missing.pem'), key: file('key.pem') } }), { code: 'config_invalid', message: /missing\.pem/ })
})

t.test('names the address when its port is taken', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  await t.rejects(admin(t, { port }), { code: 'config_invalid', message: `cannot listen on 127.0.0.1:${port}: the port is taken by another process` })
})
