import t from 'tap'
import { admitUpgrade, type UpgradeFacts } from '../../src/xagent/upgrade.js'
import { BearerKeys } from '../../src/ops/bearer-keys.js'
import { connect, packet, refusedUpgrade, SUBPROTOCOL } from './client.js'
import { KEY, listening } from './fake-route.js'

t.test('opens a link, echoes the subprotocol, offers no compression', async (t) => {
  const { ws, server, route } = await listening(t)
  const client = await connect(ws, { perMessageDeflate: true })
  t.equal(client.socket.protocol, SUBPROTOCOL)
  t.equal(client.socket.extensions, '')
  t.equal(server.links(), 1)
  t.equal(route.links.length, 1)
  t.equal(route.links[0]?.remoteAddress, '127.0.0.1')
})

t.test('picks the right subprotocol among several, and takes a client that offers none', async (t) => {
  const { ws } = await listening(t)
  t.equal((await connect(ws, { protocols: ['chat', SUBPROTOCOL] })).socket.protocol, SUBPROTOCOL)
  t.equal((await connect(ws, { protocols: [] })).socket.protocol, '')
})

t.test('refuses a client that offers only other subprotocols, naming the right one', async (t) => {
  const { ws, events } = await listening(t)
  const refused = await refusedUpgrade(ws, { protocols: ['chat', 'xagent.connector.packet.v2'] })
  t.equal(refused.status, 400)
  t.match(refused.body, new RegExp(SUBPROTOCOL.replaceAll('.', '\\.')))
  t.match(events, [{ kind: 'refused', route: 'telegram', reason: 'subprotocol', remoteAddress: '127.0.0.1' }])
})

t.test('refuses without a key and with a wrong one, and says no more than that', async (t) => {
  const { ws, events, server } = await listening(t)
  for (const key of [null, 'wrong', `${KEY}x`, KEY.slice(0, -1), '']) {
    const refused = await refusedUpgrade(ws, { key })
    t.equal(refused.status, 401)
    t.equal(refused.headers['www-authenticate'], 'Bearer')
    t.equal(refused.body, '{"error":"unauthorized"}')
  }
  t.equal(server.links(), 0)
  t.notMatch(JSON.stringify(events), KEY.slice(0, -1))
})

t.test('refuses a page of another host, with or without a key, and takes one of its own', async (t) => {
  const { ws, server } = await listening(t, { apiKeys: [] })
  for (const origin of ['https://evil.example', 'http://127.0.0.1:1', 'null', 'file://']) {
    t.equal((await refusedUpgrade(ws, { headers: { origin } })).status, 403, origin)
  }
  await connect(ws, { headers: { origin: `http://127.0.0.1:${server.port}` } })
  t.equal(server.links(), 1)
})

t.test('answers 404 where no such connector or endpoint exists', async (t) => {
  const { ws } = await listening(t)
  t.equal((await refusedUpgrade(ws.replace('telegram', 'nobody'))).status, 404)
  t.equal((await refusedUpgrade(`${ws}/x`)).status, 404)
})

t.test('does not make a link of an upgrade on another endpoint', async (t) => {
  const { http, server } = await listening(t)
  t.equal((await refusedUpgrade(`${http.replace('http', 'ws')}/telegram/connector-card.json`)).status, 200)
  t.equal(server.links(), 0)
})

t.test('refuses one link too many from one address, until one has gone', async (t) => {
  const { ws, route, events } = await listening(t, { limits: { linksPerIp: 2 } })
  const first = await connect(ws)
  await connect(ws)
  const refused = await refusedUpgrade(ws)
  t.equal(refused.status, 503)
  t.match(refused.body, /links_per_ip/)
  t.match(events, [{ kind: 'refused', reason: 'links_per_ip' }])
  const gone = new Promise((resolve) => route.once('closed', resolve))
  first.socket.close()
  await gone
  await connect(ws)
})

t.test('refuses one link too many in all', async (t) => {
  const { ws } = await listening(t, { limits: { maxLinks: 1 } })
  await connect(ws)
  t.match(await refusedUpgrade(ws), { status: 503, body: /max_links/ })
})

t.test('keeps a link that was opened with a key that has since been replaced', async (t) => {
  const { ws, server, route } = await listening(t)
  const client = await connect(ws)
  server.replaceKeys(['another'])
  const arrived = new Promise((resolve) => route.once('packet', resolve))
  client.send(packet())
  await arrived
  t.equal((await refusedUpgrade(ws)).status, 401)
})

t.test('compares hosts without regard to case and default ports', async (t) => {
  const keys = new BearerKeys([])
  const facts = (origin: string, host: string): UpgradeFacts => ({ authorization: '', origin, host, offeredProtocols: '' })
  const admitted = (origin: string, host: string) => admitUpgrade(facts(origin, host), keys, 'free').admitted
  t.ok(admitted('https://Gateway.example', 'gateway.example:443'))
  t.ok(admitted('http://gateway.example:80', 'GATEWAY.example'))
  t.ok(admitted('', 'gateway.example'))
  t.notOk(admitted('https://gateway.example', 'gateway.example:8443'))
  t.notOk(admitted('https://gateway.example', ''))
  t.notOk(admitted('https://gateway.example', 'not a host'))
})
