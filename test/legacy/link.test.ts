import t from 'tap'
import type { LegacyConnectorId, ConnectorCardId } from '../../src/protocol/ids.js'
import { answer, send, type Script } from './fake-connector.js'
import { ask, rig } from './rig.js'

const MEBIBYTE = 1024 * 1024

/** Leaves requests of a type without an answer. */
const silentOn = (type: string): Script => ({ packet }) => packet.type === type

t.test('hello says who we are, in the subprotocol and with the key', async (t) => {
  const hello = () => ({ cardId: 'im.example' as ConnectorCardId, connectorId: 'conn_1' as LegacyConnectorId })
  const { connector, next } = await rig(t, {}, { hello })
  await next('up')
  const [packet] = connector.packets('connector.hello')
  t.same(packet?.payload, {
    connector_card_id: 'im.example', connector_id: 'conn_1', protocol_version: '3.0', supported_profiles: ['xagent.im.v1'],
  })
  t.match(connector.upgrades.all[0], {
    authorization: 'Bearer key-of-the-connector', 'sec-websocket-protocol': 'xagent.connector.packet.v1', 'sec-websocket-extensions': undefined,
  })
})

t.test('hello is accepted in both dialects', async (t) => {
  const old = await rig(t)
  t.match(await old.next('up'), { connectorId: 'conn_9', protocolVersion: null })
  const current = await rig(t, { helloAck: { protocol_version: '3.0' } })
  t.match(await current.next('up'), { connectorId: 'conn_9', protocolVersion: '3.0' })
})

t.test('an answer reaches the request it belongs to, whatever the order', async (t) => {
  const { connector, next, ...links } = await rig(t, { script: silentOn('connection.descriptor.get') })
  await next('up')
  const [first, second] = [ask(links, 'connection.descriptor.get'), ask(links, 'connection.descriptor.get')]
  await connector.packet('connection.descriptor.get', 2)
  const [one, two] = connector.packets('connection.descriptor.get')
  if (one === undefined || two === undefined) throw new Error('two requests were sent')
  t.not(one.request_id, two.request_id)
  answer(connector.socket(), two, { payload: { which: 2 } })
  answer(connector.socket(), one, { payload: { which: 1 } })
  t.match(await first.answers.waitFor(), { ok: true, value: { payload: { which: 1 } } })
  t.match(await second.answers.waitFor(), { ok: true, value: { payload: { which: 2 } } })
})

t.test('both error shapes answer a request', async (t) => {
  const error = { code: 'connection_not_found', message: 'no such thing' }
  const { next, ...links } = await rig(t, {
    script: ({ socket, packet }) => {
      if (packet.type === 'auth.start') answer(socket, packet, { error })
      if (packet.type === 'auth.logout') answer(socket, packet, { type: 'error', error })
      return packet.type.startsWith('auth.')
    },
  })
  await next('up')
  t.match(await ask(links, 'auth.start').answers.waitFor(), { ok: true, value: { type: 'auth.start.ack', error } })
  t.match(await ask(links, 'auth.logout').answers.waitFor(), { ok: true, value: { type: 'error', error } })
})

t.test('a request without an answer times out once, and its late answer is told apart', async (t) => {
  const { connector, clock, next, ...links } = await rig(t, { script: silentOn('auth.status') })
  await next('up')
  const asked = ask(links, 'auth.status', 5_000)
  const { packet } = await connector.packet('auth.status')
  clock.advance(4_999)
  t.same(asked.answers.all, [])
  clock.advance(1)
  t.same(asked.answers.all, [{ ok: false, error: { kind: 'timeout', sent: true } }])
  answer(connector.socket(), packet, { payload: { late: true } })
  answer(connector.socket(), packet, { payload: { again: true } })
  t.match(await next('packet'), { packet: { payload: { again: true } } }, 'a second answer belongs to no request')
  t.equal(asked.answers.all.length, 1)
  t.match(asked.late.all, [{ payload: { late: true } }])
})

t.test('an error or ack that names no request of ours is handed on', async (t) => {
  const { connector, next } = await rig(t)
  await next('up')
  send(connector.socket(), { type: 'error', error: { code: 'invalid_packet' } })
  t.match(await next('packet'), { packet: { type: 'error', error: { code: 'invalid_packet' } } })
  send(connector.socket(), { type: 'auth.status.ack', request_id: 'req_of_somebody_else' })
  t.match(await next('packet', 2), { packet: { type: 'auth.status.ack' } })
})

t.test('a push never answers a request, even with its request_id', async (t) => {
  const { connector, next, ...links } = await rig(t, { script: silentOn('auth.status') })
  await next('up')
  const asked = ask(links, 'auth.status')
  const { packet } = await connector.packet('auth.status')
  send(connector.socket(), { type: 'connection.descriptor.push', ...(packet.request_id !== undefined && { request_id: packet.request_id }) })
  t.match(await next('packet'), { packet: { type: 'connection.descriptor.push' } })
  t.same(asked.answers.all, [])
})

t.test('a request is never sent on a link that is not up', async (t) => {
  const { connector, ...links } = await rig(t, { script: silentOn('connector.hello') })
  await connector.packet('connector.hello')
  t.same(await ask(links, 'channel.open').answers.waitFor(), { ok: false, error: { kind: 'not_connected', sent: false } })
  t.same(connector.packets('channel.open'), [])
})

t.test('requests of a lost link end before the link is said to be down', async (t) => {
  const { connector, next, seen, ...links } = await rig(t, { script: silentOn('auth.status') })
  await next('up')
  links.main.request('auth.status', '', {}, 5_000, (answered) => {
    t.same(answered, { ok: false, error: { kind: 'link_lost', sent: true } })
    t.equal(seen.all.some(({ name }) => name === 'down'), false)
  })
  await connector.packet('auth.status')
  connector.socket().terminate()
  t.match(await next('down'), { reason: 'closed with code 1006' })
})

t.test('what comes before connector.hello.ack is handed on after it, in order', async (t) => {
  const { next, names } = await rig(t, {
    script: ({ socket, packet }) => {
      if (packet.type === 'connector.hello') for (const n of [1, 2]) send(socket, { type: 'message.push', payload: { n } })
      return false
    },
  })
  t.match(await next('packet', 2), { packet: { payload: { n: 2 } } })
  t.same(names(), ['up', 'packet', 'packet'])
})

t.test('pushes are not answered, a ping is', async (t) => {
  const { connector, next } = await rig(t)
  await next('up')
  send(connector.socket(), { type: 'message.push', connector_channel_id: 'cch_1' })
  send(connector.socket(), { type: 'ping', request_id: 'req_theirs' })
  t.match((await connector.packet('pong')).packet, { request_id: 'req_theirs' })
  t.same(connector.received.all.map(({ packet }) => packet.type), ['connector.hello', 'pong'])
})

t.test('frames that are no packet are reported, and the link goes on', async (t) => {
  const { connector, next, names } = await rig(t)
  await next('up')
  connector.socket().send('{"schema":')
  connector.socket().send(Buffer.from([1, 2, 3]))
  connector.socket().send(JSON.stringify({ schema: 'xagent.connector.packet/v1', packet_id: 'p', type: 'message.push', time: 'yesterday' }))
  send(connector.socket(), { type: 'message.push' })
  await next('packet')
  t.match(await next('undecodable', 1), { code: 'invalid_packet', bytes: 10 })
  t.match(await next('undecodable', 2), { code: 'invalid_packet', bytes: 3 })
  t.same(names(), ['up', 'undecodable', 'undecodable', 'undecodable', 'packet'])
})

t.test('a push of 4 MiB passes', async (t) => {
  const { connector, next } = await rig(t)
  await next('up')
  send(connector.socket(), { type: 'message.push', payload: { raw_text: 'hello', text: 'x'.repeat(4 * MEBIBYTE) } })
  const { packet } = await next('packet')
  t.equal((packet.payload['text'] as string).length, 4 * MEBIBYTE)
})

t.test('a frame over the limit ends the link with a reason that says so', async (t) => {
  const { connector, next } = await rig(t)
  await next('up')
  const closed = new Promise((resolve) => connector.socket().on('close', resolve))
  connector.socket().send('x'.repeat(17 * MEBIBYTE))
  t.match(await next('down'), { reason: 'a frame is larger than 16777216 bytes' })
  t.equal(await closed, 1009)
})
