import { once } from 'node:events'
import t from 'tap'
import { answer, send, type Script, type WirePacket } from './fake-connector.js'
import { ask, invoke, rig, type Rig } from './rig.js'

/** Leaves tool calls to the test. */
const manual: Script = ({ packet }) => packet.type === 'tool.invoke'
/** Answers every tool call at once. */
const prompt: Script = ({ socket, packet }) => {
  if (packet.type === 'tool.invoke') answer(socket, packet, { payload: { result: {} } })
  return packet.type === 'tool.invoke'
}

const callId = (packet: WirePacket): unknown => (packet.payload?.['context'] as { tool_call_id?: string })['tool_call_id']
const order = (links: Rig): unknown[] => links.connector.packets('tool.invoke').map(callId)

/** The place of the socket that a call came on; 0 is the main link. */
async function linkOf(links: Rig, nth: number): Promise<number> {
  const { socket } = await links.connector.packet('tool.invoke', nth)
  return links.connector.sockets.indexOf(socket)
}

async function answerCall(links: Rig, nth: number, change: Partial<WirePacket> = {}): Promise<void> {
  const { socket, packet } = await links.connector.packet('tool.invoke', nth)
  answer(socket, packet, { payload: { result: {} }, ...change })
}

/** For what needs dials of two sides in an order that the sockets decide: a clock that runs, some five times as fast. */
function letTimeRun(t: Parameters<typeof rig>[0], links: Rig): void {
  const running = setInterval(() => links.clock.advance(5), 1)
  t.teardown(() => clearInterval(running))
}

/** Links whose first tool link has said hello. */
async function ready(t: Parameters<typeof rig>[0], script: Script, options: { toolLinks?: number; outboundWaitMs?: number } = {}): Promise<Rig> {
  const links = await rig(t, { script }, { toolLinks: 4, ...options })
  await links.next('up')
  if (options.toolLinks !== 0) await links.connector.packet('connector.hello', 2)
  return links
}

t.test('one tool link is open with the main link, and a call goes on it', async (t) => {
  const links = await ready(t, prompt)
  const call = invoke(links, 'a')
  t.match(await call.answers.waitFor(), { ok: true, value: { type: 'tool.invoke.ack' } })
  t.match(links.connector.packets('tool.invoke')[0], {
    connector_channel_id: 'cch_1', payload: { tool_id: 'example_send', arguments: { text: 'hi' }, context: { tool_call_id: 'a' } },
  })
  t.equal(await linkOf(links, 1), 1)
  t.equal(links.connector.sockets.length, 2)
})

t.test('every link says hello with the same stored connector id', async (t) => {
  let connectorId = ''
  const links = await rig(t, { script: prompt }, { toolLinks: 1, hello: () => ({ cardId: 'im.example', connectorId }) as never })
  connectorId = 'conn_9'
  await links.connector.packet('connector.hello', 2)
  t.same(links.connector.packets('connector.hello').map((hello) => hello.payload?.['connector_id']), ['', 'conn_9'])
})

t.test('more links open while all are busy, up to the limit; further calls wait unsent, first come first served', async (t) => {
  const links = await ready(t, manual, { toolLinks: 2 })
  for (const id of ['a', 'b', 'c', 'd']) invoke(links, id)
  await links.connector.packet('tool.invoke', 2)
  t.same(order(links), ['a', 'b'])
  t.equal(links.connector.sockets.length, 3)
  t.same([links.tools.running, links.tools.waiting], [2, 2])
  await answerCall(links, 2)
  await links.connector.packet('tool.invoke', 3)
  await answerCall(links, 1)
  await links.connector.packet('tool.invoke', 4)
  t.same(order(links), ['a', 'b', 'c', 'd'])
})

t.test('a call that waits too long ends certainly unsent', async (t) => {
  const links = await ready(t, manual, { toolLinks: 1, outboundWaitMs: 20_000 })
  invoke(links, 'a')
  const waiting = invoke(links, 'b')
  await links.connector.packet('tool.invoke')
  links.clock.advance(20_000)
  t.same(waiting.answers.all, [{ ok: false, error: { kind: 'not_connected', sent: false } }])
  await answerCall(links, 1)
  t.same(order(links), ['a'])
})

t.test('a call made while the connector is away waits for it', async (t) => {
  const links = await rig(t, { script: prompt, upgradeStatus: 503 }, { toolLinks: 1 })
  const call = invoke(links, 'a')
  await links.next('dial failed')
  links.connector.options = { script: prompt }
  links.clock.advance(100)
  t.match(await call.answers.waitFor(), { ok: true })
})

t.test('a call of 12 s delays neither other calls nor pushes nor pings, and kills no link', async (t) => {
  const links = await ready(t, (received, connector) => {
    const { type } = received.packet
    return (type === 'tool.invoke' && callId(received.packet) === 'slow') || prompt(received, connector)
  })
  const slow = invoke(links, 'slow')
  await links.connector.packet('tool.invoke')
  links.clock.advance(12_000)
  t.match(await invoke(links, 'quick').answers.waitFor(), { ok: true })
  send(links.connector.socket(), { type: 'message.push' })
  await links.next('packet')
  t.match(await ask(links, 'channel.open').answers.waitFor(), { ok: true })
  links.clock.advance(15_000)
  const pinged = await links.connector.packet('ping')
  t.not(pinged.socket, (await links.connector.packet('tool.invoke')).socket, 'the busy link is not judged')
  await answerCall(links, 1)
  t.match(await slow.answers.waitFor(), { ok: true })
  t.same(links.names(), ['up', 'packet'])
})

t.test('a link that is lost during a call leaves its outcome unknown, and another takes its place', async (t) => {
  const links = await ready(t, manual, { toolLinks: 1 })
  const call = invoke(links, 'a')
  const { socket } = await links.connector.packet('tool.invoke')
  socket.terminate()
  t.same(await call.answers.waitFor(), { ok: false, error: { kind: 'link_lost', sent: true } })
  invoke(links, 'b')
  links.clock.advance(100)
  await links.connector.packet('tool.invoke', 2)
  t.same(order(links), ['a', 'b'], 'the lost call is not repeated')
})

t.test('a timed-out link takes no call before its late answer, which is told once', async (t) => {
  const links = await ready(t, manual, { toolLinks: 1 })
  const timedOut = invoke(links, 'a', { timeoutMs: 5_000 })
  await links.connector.packet('tool.invoke')
  links.clock.advance(5_000)
  t.same(timedOut.answers.all, [{ ok: false, error: { kind: 'timeout', sent: true } }])
  invoke(links, 'b')
  t.equal(await linkOf(links, 2), 2, 'on a link of its own')
  await answerCall(links, 1)
  t.match(await timedOut.late.waitFor(), { type: 'tool.invoke.ack' })
  t.equal(timedOut.answers.all.length, 1)
  t.equal(timedOut.late.all.length, 1)
})

t.test('a link whose late answer came serves again', async (t) => {
  const links = await ready(t, manual, { toolLinks: 2 })
  const timedOut = invoke(links, 'a', { timeoutMs: 5_000 })
  await links.connector.packet('tool.invoke')
  links.clock.advance(5_000)
  await links.connector.packet('connector.hello', 3)
  await answerCall(links, 1)
  await timedOut.late.waitFor()
  invoke(links, 'b')
  invoke(links, 'c')
  t.same([await linkOf(links, 2), await linkOf(links, 3)].sort(), [1, 2])
  t.equal(links.connector.sockets.length, 3)
})

t.test('at most as many links as the pool has wait for late answers, then the oldest is closed', async (t) => {
  const links = await ready(t, manual, { toolLinks: 1 })
  invoke(links, 'a', { timeoutMs: 5_000 })
  const { socket } = await links.connector.packet('tool.invoke')
  const closed = once(socket, 'close')
  links.clock.advance(5_000)
  invoke(links, 'b', { timeoutMs: 5_000 })
  const second = await links.connector.packet('tool.invoke', 2)
  links.clock.advance(5_000)
  await closed
  t.equal(second.socket.readyState, second.socket.OPEN)
})

t.test('progress reaches the call that runs on its link', async (t) => {
  const links = await ready(t, manual)
  const call = invoke(links, 'a')
  const { socket, packet } = await links.connector.packet('tool.invoke')
  send(socket, { type: 'tool.progress.push', ...(packet.request_id !== undefined && { request_id: packet.request_id }), payload: { progress: 0.5 } })
  t.match(await call.progress.waitFor(), { progress: 0.5 })
  t.same(call.answers.all, [], 'progress is no answer')
})

t.test('a push that comes on a tool link is taken', async (t) => {
  const links = await ready(t, prompt)
  await invoke(links, 'a').answers.waitFor()
  send(links.connector.socket(1), { type: 'message.push', payload: { n: 1 } })
  t.match(await links.next('packet'), { packet: { type: 'message.push', payload: { n: 1 } } })
})

t.test('an idle extra link closes after 60 s, the first one stays', async (t) => {
  const links = await ready(t, manual, { toolLinks: 2 })
  const calls = [invoke(links, 'a'), invoke(links, 'b')]
  await links.connector.packet('tool.invoke', 2)
  await answerCall(links, 1)
  await answerCall(links, 2)
  for (const call of calls) await call.answers.waitFor()
  const closed = Promise.race([1, 2].map(async (index) => {
    await once(links.connector.socket(index), 'close')
    return index
  }))
  // In steps with answered pings: silence of a minute would be a dead link.
  for (const nth of [1, 2, 3, 4]) {
    links.clock.advance(14_000)
    for (const socket of links.connector.sockets) send(socket, { type: 'message.push' })
    await links.next('packet', nth * 3)
  }
  links.clock.advance(4_000)
  const index = await closed
  const other = links.connector.socket(index === 1 ? 2 : 1)
  t.equal(other.readyState, other.OPEN)
})

t.test('connector_channel_not_owned: the call is repeated once on the main link, and so go the next ones', async (t) => {
  const links = await ready(t, ({ socket, packet }, connector) => {
    if (packet.type !== 'tool.invoke') return false
    const onMain = socket === connector.socket(0)
    answer(socket, packet, onMain ? { payload: { result: {} } } : { type: 'error', error: { code: 'connector_channel_not_owned' } })
    return true
  })
  t.match(await invoke(links, 'a').answers.waitFor(), { ok: true, value: { type: 'tool.invoke.ack' } })
  t.match(await invoke(links, 'b').answers.waitFor(), { ok: true, value: { type: 'tool.invoke.ack' } })
  t.same(order(links), ['a', 'a', 'b'])
  t.same([await linkOf(links, 1), await linkOf(links, 2), await linkOf(links, 3)], [1, 0, 0])
})

t.test('connector_channel_not_owned from the main link is the call\'s answer', async (t) => {
  const links = await ready(t, ({ socket, packet }) => {
    if (packet.type === 'tool.invoke') answer(socket, packet, { error: { code: 'connector_channel_not_owned' } })
    return packet.type === 'tool.invoke'
  })
  t.match(await invoke(links, 'a').answers.waitFor(), { ok: true, value: { error: { code: 'connector_channel_not_owned' } } })
  t.same(order(links), ['a', 'a'])
})

t.test('a connector that drops the main link for every second link gets its calls on the main link', async (t) => {
  const links = await rig(t, {
    script: (received, connector) => {
      // The newest link wins, as in a connector that knows one xAgent only.
      if (received.packet.type === 'connector.hello') for (const socket of connector.sockets) if (socket !== received.socket) socket.terminate()
      return prompt(received, connector)
    },
  }, { toolLinks: 1 })
  letTimeRun(t, links)
  await links.next('up', 3)
  const call = invoke(links, 'a')
  t.match(await call.answers.waitFor(), { ok: true })
  t.equal(links.seen.all.filter(({ name }) => name === 'down').length, 2)
})

t.test('without tool links calls go on the main link, one at a time', async (t) => {
  const links = await ready(t, manual, { toolLinks: 0 })
  const first = invoke(links, 'a')
  invoke(links, 'b')
  await links.connector.packet('tool.invoke')
  send(links.connector.socket(), { type: 'tool.progress.push', payload: { progress: 1 } })
  await first.progress.waitFor()
  t.same(order(links), ['a'])
  t.same([links.tools.running, links.tools.waiting], [1, 1])
  await answerCall(links, 1)
  await links.connector.packet('tool.invoke', 2)
  t.equal(links.connector.sockets.length, 1)
})

t.test('a call that timed out on the main link holds the next one back until the connector reads again', async (t) => {
  const links = await ready(t, ({ packet }) => packet.type === 'tool.invoke' || packet.type === 'ping', { toolLinks: 0 })
  const timedOut = invoke(links, 'a', { timeoutMs: 5_000 })
  await links.connector.packet('tool.invoke')
  links.clock.advance(5_000)
  invoke(links, 'b')
  const { socket, packet } = await links.connector.packet('ping')
  t.same(order(links), ['a'])
  answer(socket, packet, { type: 'pong' })
  await links.connector.packet('tool.invoke', 2)
  await answerCall(links, 1)
  await timedOut.late.waitFor()
  t.equal(timedOut.answers.all.length, 1)
})

t.test('closing ends waiting calls unsent and running ones in doubt, once each', async (t) => {
  const links = await ready(t, manual, { toolLinks: 1 })
  const running = invoke(links, 'a')
  const waiting = invoke(links, 'b')
  await links.connector.packet('tool.invoke')
  await links.tools.close('shutting down')
  t.same(waiting.answers.all, [{ ok: false, error: { kind: 'not_connected', sent: false } }])
  t.same(running.answers.all, [{ ok: false, error: { kind: 'link_lost', sent: true } }])
  t.same(await invoke(links, 'c').answers.waitFor(), { ok: false, error: { kind: 'not_connected', sent: false } })
  await links.main.close('shutting down')
  t.equal(links.clock.pending, 0)
})
