import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { WebSocketServer } from 'ws'
import { connectorLinks } from '../../src/legacy/connector-links.js'
import { UndiciLegacyHttp } from '../../src/legacy/http.js'
import { systemClock } from '../../src/ops/clock.js'
import type { ConnectorCardId } from '../../src/protocol/ids.js'
import { EventLog } from './event-log.js'
import { answer, type WirePacket } from './fake-connector.js'

const pem = (name: string): string => readFileSync(new URL(`../xagent/tls/${name}.pem`, import.meta.url), 'utf8')

/** How the data plane and the Card of a TLS connector were reached: `up` or the reason, and the Card's result. */
async function reached(t: { teardown(end: () => unknown): void }, ca: string | null): Promise<{ link: string; card: unknown }> {
  const server = createServer({ cert: pem('cert'), key: pem('key') }, (_request, response) => response.end('{"name":"card"}'))
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => {
    socket.on('message', (data: Buffer) => answer(socket, JSON.parse(data.toString()) as WirePacket, { payload: { connector_id: 'conn_1' } }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const endpoint = { baseUrl: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, apiKey: null, ca, maxFrameBytes: 1_048_576 }
  const seen = new EventLog<string>()
  const clock = systemClock()
  const http = new UndiciLegacyHttp({ endpoint, clock })
  const { main } = connectorLinks({
    endpoint, clock, supportedProfiles: () => [], toolLinks: 0, outboundWaitMs: 1_000, random: () => 0,
    hello: () => ({ cardId: 'im.example' as ConnectorCardId, connectorId: '' }),
  }, {
    onUp: () => seen.add('up'),
    onDialFailed: (reason) => seen.add(reason),
    onDown: () => {},
    onPacket: () => {},
    onUndecodable: () => {},
  })
  t.teardown(async () => {
    await Promise.all([main.close('test ends'), http.close()])
    sockets.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  main.start()
  return { link: await seen.waitFor(), card: await http.card() }
}

t.test('a connector behind a private CA is reached with that CA', async (t) => {
  t.same(await reached(t, pem('cert')), { link: 'up', card: { ok: true, value: { name: 'card' } } })
})

t.test('without it neither side is trusted, and the reason is the code', async (t) => {
  t.same(await reached(t, null), {
    link: 'cannot connect: DEPTH_ZERO_SELF_SIGNED_CERT',
    card: { ok: false, error: { code: 'connector_unreachable', message: 'DEPTH_ZERO_SELF_SIGNED_CERT' } },
  })
})
