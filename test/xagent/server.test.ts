import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { connect, refusedUpgrade } from './client.js'
import { FakeRoute, KEY, listening } from './fake-route.js'

/** A port that nobody listens on. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}

const tlsFile = (name: string): string => fileURLToPath(new URL(`tls/${name}`, import.meta.url))

t.test('names the address when its port is taken', async (t) => {
  const { server } = await listening(t)
  await t.rejects(listening(t, { port: server.port }), { message: `cannot listen on 127.0.0.1:${server.port}: the port is taken by another process` })
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  await t.rejects(listening(t, { port }), { code: 'config_invalid' })
})

t.test('names the address when the host is none of this machine', async (t) => {
  await t.rejects(listening(t, { host: '192.0.2.1' }), { message: /192\.0\.2\.1.*no such address/ })
})

t.test('listens on IPv6, where one address counts as one', async (t) => {
  const { server, route } = await listening(t, { host: '::1' })
  await connect(`ws://[::1]:${server.port}/telegram/ws`)
  t.equal(route.links[0]?.remoteAddress, '0:0:0:0:0:0:0:1')
})

t.test('shows an IPv4 client as IPv4 on a listener for both', async (t) => {
  const { server, route } = await listening(t, { host: '::' })
  await connect(`ws://127.0.0.1:${server.port}/telegram/ws`)
  t.equal(route.links[0]?.remoteAddress, '127.0.0.1')
})

t.test('serves HTTPS and WSS', async (t) => {
  const { server, route } = await listening(t, { tls: { cert: tlsFile('cert.pem'), key: tlsFile('key.pem') } })
  const client = await connect(`wss://127.0.0.1:${server.port}/telegram/ws`, { rejectUnauthorized: false })
  t.equal(route.links.length, 1)
  client.socket.close()
  await client.closed
})

t.test('refuses TLS files that cannot be used', async (t) => {
  await t.rejects(listening(t, { tls: { cert: tlsFile('missing.pem'), key: tlsFile('key.pem') } }), { message: /missing\.pem/ })
})

t.test('refuses an empty key instead of letting everybody in', async (t) => {
  await t.rejects(listening(t, { apiKeys: ['good', ''] }), { code: 'config_invalid' })
})

t.test('serves routes that came later, and no longer those that went', async (t) => {
  const routes = new Map<string, FakeRoute>()
  const { http } = await listening(t, { route: (name) => routes.get(name) })
  const status = async () => (await fetch(`${http}/telegram/connector-card.json`)).status
  t.equal(await status(), 404)
  routes.set('telegram', new FakeRoute())
  t.equal(await status(), 200)
  routes.clear()
  t.equal(await status(), 404)
})

t.test('stops accepting: no new connection, open links go on, kept connections get no link', async (t) => {
  const { ws, http, server, route } = await listening(t)
  const client = await connect(ws)
  await fetch(`${http}/telegram/health`, { headers: { authorization: `Bearer ${KEY}` } })
  server.stopAccepting()
  server.stopAccepting()
  await t.rejects(refusedUpgrade(ws))
  t.equal(client.socket.readyState, client.socket.OPEN)
  const arrived = once(route, 'packet')
  client.send({ schema: 'xagent.connector.packet/v1', packet_id: 'p', type: 'ping' })
  await arrived
})

t.test('closes every link with code and reason, spread over the time given, and frees the port', async (t) => {
  const { ws, server, route } = await listening(t, { port: await freePort() })
  const clients = await Promise.all(Array.from({ length: 5 }, () => connect(ws)))
  const startedAt = performance.now()
  const closedAt = Promise.all(clients.map((client) => client.closed.then(() => performance.now() - startedAt)))
  await server.close(1012, 'restart', 200)
  t.equal(server.links(), 0)
  t.equal(route.closedLinks, 5)
  for (const client of clients) t.same(await client.closed, { code: 1012, reason: 'restart' })
  t.ok(Math.max(...(await closedAt)) - Math.min(...(await closedAt)) >= 100, 'not all at once')
  await listening(t, { port: server.port })
})
