import t from 'tap'
import type { ConnectorCardId } from '../../src/protocol/ids.js'
import { answer, FakeConnector, send, type Script } from './fake-connector.js'
import { ask, invoke, rig } from './rig.js'

const silentOn = (...types: string[]): Script => ({ packet }) => types.includes(packet.type)

t.test('a lost link is dialled again at once', async (t) => {
  const { connector, clock, next, ...links } = await rig(t)
  await next('up')
  clock.advance(5_000)
  connector.socket().terminate()
  t.match(await next('down'), { reason: 'closed with code 1006' })
  t.equal(links.main.up, false)
  t.equal(links.main.dialling, true)
  clock.advance(0)
  await next('up', 2)
  t.equal(links.main.up, true)
})

t.test('a connector that hangs up right after hello is not dialled in a loop', async (t) => {
  const { connector, clock, next } = await rig(t)
  await next('up')
  connector.socket().terminate()
  await next('down')
  clock.advance(99)
  t.equal(connector.upgrades.all.length, 1)
  clock.advance(1)
  await next('up', 2)
})

t.test('a connector that is away is dialled every 100 ms until it is back', async (t) => {
  const { connector, clock, next, seen } = await rig(t)
  await next('up')
  clock.advance(5_000)
  const { port } = connector
  await connector.stop()
  await next('down')
  clock.advance(0)
  t.match(await next('dial failed', 1), { reason: 'cannot connect: ECONNREFUSED', attempt: 1 })
  clock.advance(100)
  t.match(await next('dial failed', 2), { attempt: 2 })
  await FakeConnector.start(t, { port })
  clock.advance(99)
  t.equal(seen.all.filter(({ name }) => name === 'up').length, 1)
  clock.advance(1)
  await next('up', 2)
})

t.test('after 5 minutes of failed dials nobody waits for the next one', async (t) => {
  const { clock, next, ...links } = await rig(t, { upgradeStatus: 503 })
  t.match(await next('dial failed'), { reason: 'the WebSocket upgrade was answered with HTTP 503' })
  t.equal(links.main.dialling, true)
  clock.advance(100)
  await next('dial failed', 2)
  // The third dial falls into this leap and fails before the 5 minutes are over.
  clock.advance(299_899)
  await next('dial failed', 3)
  t.equal(links.main.dialling, true)
  clock.advance(100)
  await next('dial failed', 4)
  t.equal(links.main.dialling, false)
})

for (const status of [401, 403]) {
  t.test(`HTTP ${status} is not dialled every 100 ms`, async (t) => {
    const { connector, clock, next, ...links } = await rig(t, { upgradeStatus: status }, { random: () => 0.5 })
    t.match(await next('dial failed'), { reason: `the WebSocket upgrade was answered with HTTP ${status}` })
    t.equal(links.main.dialling, false)
    clock.advance(749)
    t.equal(connector.upgrades.all.length, 1)
    clock.advance(1)
    await next('dial failed', 2)
  })
}

t.test('a redirect is not followed', async (t) => {
  const { connector, next } = await rig(t, { upgradeStatus: 307 })
  t.match(await next('dial failed'), { reason: 'the WebSocket upgrade was answered with HTTP 307' })
  t.equal(connector.upgrades.all.length, 1)
})

for (const request_id of ['the one asked', 'none']) {
  t.test(`a refused hello is a failed dial that names the code (request_id: ${request_id})`, async (t) => {
    const { next, names, ...links } = await rig(t, {
      script: ({ socket, packet }) => {
        const refusal = { type: 'error', error: { code: 'connector_card_id_mismatch', message: 'secret words' } }
        if (request_id === 'none') send(socket, refusal)
        else answer(socket, packet, refusal)
        return true
      },
    })
    t.match(await next('dial failed'), { reason: 'connector.hello was refused: connector_card_id_mismatch' })
    t.same(names(), ['dial failed'])
    t.equal(links.main.dialling, false, 'another Card does not come within 100 ms')
  })
}

t.test('a hello that another connector accepts is refused', async (t) => {
  const { next } = await rig(t, { helloAck: { connector_card_id: 'im.other' } })
  t.match(await next('dial failed'), { reason: 'connector.hello was refused: connector_card_id_mismatch' })
})

t.test('a hello without an answer is a failed dial', async (t) => {
  const { connector, clock, next } = await rig(t, { script: silentOn('connector.hello') })
  await connector.packet('connector.hello')
  clock.advance(10_000)
  t.match(await next('dial failed'), { reason: 'no answer to connector.hello' })
})

t.test('nothing is dialled before the Card is known, and the dial follows within 100 ms', async (t) => {
  let cardId: ConnectorCardId | null = null
  const { connector, clock, next } = await rig(t, {}, { hello: () => (cardId === null ? null : { cardId, connectorId: '' }) })
  t.match(await next('dial failed'), { reason: 'the Card of the connector is not known yet' })
  t.equal(connector.upgrades.all.length, 0)
  cardId = 'im.example' as ConnectorCardId
  clock.advance(100)
  await next('up')
})

t.test('a connector that no longer answers is found out by ping', async (t) => {
  const { connector, clock, next } = await rig(t, { script: silentOn('ping') })
  await next('up')
  clock.advance(15_000)
  await connector.packet('ping')
  clock.advance(15_000)
  t.match(await next('down'), { reason: 'no answer to ping' })
})

t.test('a half-open link is found out though its socket stays open', async (t) => {
  const { connector, clock, next } = await rig(t)
  await next('up')
  connector.socket().pause()
  clock.advance(30_000)
  t.match(await next('down'), { reason: 'no answer to ping' })
})

t.test('an answered ping keeps the link and reaches nobody else', async (t) => {
  const { connector, clock, next, names } = await rig(t)
  await next('up')
  for (const nth of [1, 2, 3]) {
    clock.advance(15_000)
    await connector.packet('ping', nth)
    send(connector.socket(), { type: 'message.push' })
    await next('packet', nth)
  }
  t.same(names(), ['up', 'packet', 'packet', 'packet'])
})

t.test('a running request excuses silence', async (t) => {
  const { connector, clock, next, names, ...links } = await rig(t, { script: silentOn('auth.start', 'ping') })
  await next('up')
  const asked = ask(links, 'auth.start', 100_000)
  const { packet } = await connector.packet('auth.start')
  clock.advance(99_000)
  answer(connector.socket(), packet)
  await asked.answers.waitFor()
  t.same(connector.packets('ping'), [])
  t.same(names(), ['up'])
})

t.test('a paused link reads nothing, is not judged, and reads on while a request is open', async (t) => {
  const { connector, clock, next, names, ...links } = await rig(t, { script: silentOn('auth.status', 'tool.invoke') }, { toolLinks: 1 })
  await next('up')
  links.main.pause()
  const call = invoke(links, 'a', { timeoutMs: 600_000 })
  const called = await connector.packet('tool.invoke')
  send(connector.socket(), { type: 'message.push', payload: { n: 1 } })
  clock.advance(120_000)
  answer(called.socket, called.packet)
  await call.answers.waitFor()
  t.same(names(), ['up'], 'what was sent before the answer on the other link would have been read by now')
  t.same(connector.packets('ping'), [])
  const asked = ask(links, 'auth.status')
  t.match(await next('packet'), { packet: { payload: { n: 1 } } })
  const { packet } = await connector.packet('auth.status')
  answer(connector.socket(), packet)
  await asked.answers.waitFor()
  send(connector.socket(), { type: 'message.push', payload: { n: 2 } })
  links.main.resume()
  t.match(await next('packet', 2), { packet: { payload: { n: 2 } } })
})

t.test('a link that is dialled while paused still gets its opens answered', async (t) => {
  const { connector, clock, next, ...links } = await rig(t)
  await next('up')
  clock.advance(5_000)
  connector.socket().terminate()
  await next('down')
  links.main.pause()
  clock.advance(0)
  await next('up', 2)
  t.match(await ask(links, 'channel.open').answers.waitFor(), { ok: true, value: { type: 'channel.open.ack' } })
})

t.test('closing hands over what the connector sent before its close frame, and ends for good', async (t) => {
  const { connector, clock, next, names, ...links } = await rig(t)
  await next('up')
  links.main.pause()
  send(connector.socket(), { type: 'message.push' })
  await links.main.close('shutting down')
  t.match(await next('down'), { reason: 'shutting down' })
  t.same(names(), ['up', 'packet', 'down'])
  clock.advance(600_000)
  t.equal(connector.upgrades.all.length, 1)
  t.equal(clock.pending, 0)
})

t.test('closing cuts a connector that does not answer the close frame', async (t) => {
  const { connector, clock, next, ...links } = await rig(t)
  await next('up')
  connector.socket().pause()
  const closed = links.main.close('shutting down')
  clock.advance(1_000)
  await closed
  t.match(await next('down'), { reason: 'shutting down' })
})

t.test('closing while the connector is away stops the dials', async (t) => {
  const { connector, clock, next, ...links } = await rig(t, { upgradeStatus: 503 })
  await next('dial failed')
  await links.main.close('shutting down')
  clock.advance(600_000)
  t.equal(connector.upgrades.all.length, 1)
  t.equal(clock.pending, 0)
})
