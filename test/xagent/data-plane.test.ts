import { once } from 'node:events'
import t from 'tap'
import type { PacketId } from '../../src/protocol/ids.js'
import { connect, packet } from './client.js'
import { listening } from './fake-route.js'
import { ManualClock } from '../helper/manual-clock.js'

const LIMIT = 4096

/** A valid packet of exactly this many bytes. */
function packetOf(bytes: number): string {
  const empty = JSON.stringify(packet({ payload: { filler: '' } }))
  return JSON.stringify({ ...(JSON.parse(empty) as object), payload: { filler: 'x'.repeat(bytes - empty.length) } })
}

t.test('hands packets to the route in wire order and sends what the route sends', async (t) => {
  const { ws, route } = await listening(t)
  const opened = route.nextLink()
  const client = await connect(ws)
  const link = await opened
  for (let i = 0; i < 50; i += 1) client.send(packet({ request_id: `r${i}` }))
  while (route.packets.length < 50) await once(route, 'packet')
  t.same(route.packets.map((received) => received.requestId), Array.from({ length: 50 }, (_, i) => `r${i}`))

  t.equal(link.send({ packetId: 'p1' as PacketId, type: 'pong', payload: { text: 'Grüße 👋' } }), 'queued')
  t.same(await client.frame(0), { schema: 'xagent.connector.packet/v1', packet_id: 'p1', type: 'pong', payload: { text: 'Grüße 👋' } })
})

t.test('closes a link that sends a binary frame with 1003 and a reason', async (t) => {
  const { ws, route, events } = await listening(t)
  const client = await connect(ws)
  client.socket.send(Buffer.from(JSON.stringify(packet())), { binary: true })
  t.match(await client.closed, { code: 1003, reason: /text frames only/ })
  t.equal(route.packets.length, 0)
  t.match(events, [{ kind: 'closed', reason: 'binary_frame' }])
})

t.test('takes a frame of exactly the limit', async (t) => {
  const { ws, route } = await listening(t, { limits: { maxFrameBytes: LIMIT } })
  const client = await connect(ws)
  client.send(packetOf(LIMIT))
  await once(route, 'packet')
  t.equal(route.packets.length, 1)
})

for (const [what, bytes] of [['one byte over the limit', LIMIT + 1], ['twice the limit', 2 * LIMIT]] as const) {
  t.test(`closes a link with 1009 and a reason for a frame ${what}`, async (t) => {
    const { ws, route, events } = await listening(t, { limits: { maxFrameBytes: LIMIT } })
    const client = await connect(ws)
    client.send(packetOf(bytes))
    t.match(await client.closed, { code: 1009, reason: /frame_too_large/ })
    t.equal(route.packets.length, 0)
    t.match(events, [{ kind: 'closed', reason: 'frame_too_large' }])
  })
}

t.test('ends a link for a frame more than twice the limit, other links go on', async (t) => {
  const { ws, route } = await listening(t, { limits: { maxFrameBytes: LIMIT } })
  const [bad, good] = [await connect(ws), await connect(ws)]
  bad.send(packetOf(2 * LIMIT + 1))
  await bad.closed
  good.send(packet())
  await once(route, 'packet')
  t.equal(route.packets.length, 1)
  t.equal(route.closedLinks, 1)
})

t.test('ends a link for invalid UTF-8, other links go on', async (t) => {
  const { ws, route } = await listening(t)
  const [bad, good] = [await connect(ws), await connect(ws)]
  bad.socket.send(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]), { binary: false })
  await bad.closed
  good.send(packet())
  await once(route, 'packet')
  t.equal(route.packets.length, 1)
})

t.test('answers what is no packet with invalid_packet, its ids returned where they can be read', async (t) => {
  const { ws, route, events } = await listening(t)
  const client = await connect(ws)
  const faults = ['not json', '[]', 'null', '"text"', '', JSON.stringify({ ...packet(), schema: 'other' }), JSON.stringify(packet({ type: 7 }))]
  for (const fault of faults) client.send(fault)
  client.send(packet({ packet_id: 'pkt-x', request_id: 'req-x', payload: [] }))
  const last = await client.frame(faults.length)
  t.match(last, {
    schema: 'xagent.connector.packet/v1', type: 'error', request_id: 'req-x', reply_to: 'pkt-x', payload: {}, error: { code: 'invalid_packet', message: /payload/ },
  })
  t.ok(Number.isInteger(last['time']))
  t.equal(new Set(client.frames.map((frame) => (JSON.parse(frame) as { packet_id: string }).packet_id)).size, faults.length + 1)
  t.equal(events.filter((event) => event.kind === 'undecodable').length, faults.length + 1)
  t.equal(route.packets.length, 0)
})

t.test('survives nesting as deep as a frame allows, outside and inside the payload', async (t) => {
  const { ws, route } = await listening(t, { limits: { maxFrameBytes: 1_048_576 } })
  const client = await connect(ws)
  client.send('['.repeat(1_000_000))
  t.match(await client.frame(0), { error: { code: 'invalid_packet' } })
  const depth = 100_000
  client.send(JSON.stringify(packet({ payload: { deep: 'DEEP' } })).replace('"DEEP"', `${'['.repeat(depth)}${']'.repeat(depth)}`))
  client.send(packet({ request_id: 'after' }))
  while (!route.packets.some((received) => received.requestId === 'after') && client.socket.readyState === client.socket.OPEN) await once(route, 'packet')
  t.equal(route.packets.at(-1)?.requestId, 'after')
})

t.test('takes __proto__ and constructor as ids like any other', async (t) => {
  const { ws, route } = await listening(t)
  const client = await connect(ws)
  client.send('{"schema":"xagent.connector.packet/v1","packet_id":"__proto__","request_id":"constructor","connector_channel_id":"__proto__","type":"ping","payload":{"__proto__":{"a":1}}}')
  await once(route, 'packet')
  t.match(route.packets[0], { packetId: '__proto__', requestId: 'constructor', channelId: '__proto__' })
  t.equal(({} as Record<string, unknown>)['a'], undefined)
})

t.test('closes a link after more than 20 undecodable frames in a row', async (t) => {
  const { ws } = await listening(t)
  const client = await connect(ws)
  for (let i = 0; i < 21; i += 1) client.send('{')
  t.match(await client.closed, { code: 1008, reason: /invalid_packets/ })
  t.equal(client.frames.length, 21)
})

t.test('keeps a link whose undecodable frames are not in a row', async (t) => {
  const { ws, route } = await listening(t)
  const client = await connect(ws)
  for (let i = 0; i < 60; i += 1) client.send(i % 20 === 19 ? packet() : '{')
  await client.frame(56)
  t.equal(route.packets.length, 3)
  t.equal(client.socket.readyState, client.socket.OPEN)
})

t.test('closes a link that sends more packets than allowed with 1008 rate_limited', async (t) => {
  const clock = new ManualClock()
  const { ws, route, events } = await listening(t, { clock, limits: { packetsPerSecond: 10 } })
  const client = await connect(ws)
  for (let i = 0; i < 10; i += 1) client.send(packet())
  while (route.packets.length < 10) await once(route, 'packet')
  clock.advance(500)
  for (let i = 0; i < 6; i += 1) client.send(packet())
  t.match(await client.closed, { code: 1008, reason: /rate_limited/ })
  t.equal(route.packets.length, 16, 'five more were refilled in half a second')
  t.match(events, [{ kind: 'closed', reason: 'rate_limited' }])
})

t.test('does not count acks that matched', async (t) => {
  const clock = new ManualClock()
  const { ws, route } = await listening(t, { clock, limits: { packetsPerSecond: 5 } })
  route.countsAgainstLimit = false
  const client = await connect(ws)
  for (let i = 0; i < 100; i += 1) client.send(packet({ type: 'chat.message.ack' }))
  while (route.packets.length < 100) await once(route, 'packet')
  t.equal(client.socket.readyState, client.socket.OPEN)
})

t.test('closes a link whose hello does not come in time, and keeps one whose hello came', async (t) => {
  const clock = new ManualClock()
  const { ws, route, events } = await listening(t, { clock, limits: { helloTimeoutMs: 10_000 } })
  const [silent, greeted] = [await connect(ws), await connect(ws)]
  route.links[1]?.helloDone()
  clock.advance(9_999)
  t.equal(events.length, 0)
  clock.advance(1)
  t.match(await silent.closed, { code: 1008, reason: /hello_timeout/ })
  t.match(events, [{ kind: 'closed', reason: 'hello_timeout', link: route.links[0]?.id }])
  t.equal(greeted.socket.readyState, greeted.socket.OPEN)
  t.equal(clock.pending, 0)
})

t.test('sends nothing on a closed link and does not mind being asked', async (t) => {
  const { ws, route } = await listening(t)
  const opened = route.nextLink()
  const client = await connect(ws)
  const link = await opened
  const gone = once(route, 'closed')
  client.socket.terminate()
  await gone
  t.equal(link.send({ packetId: 'p' as PacketId, type: 'pong', payload: {} }), 'closed')
  link.close(1000, 'again')
  link.helloDone()
  t.equal(route.closedLinks, 1)
})

t.test('refuses to send a frame over the limit, and closes with a reason cut to what fits', async (t) => {
  const { ws, route } = await listening(t, { limits: { maxFrameBytes: LIMIT } })
  const client = await connect(ws)
  const [link] = route.links
  t.equal(link?.send({ packetId: 'p' as PacketId, type: 'pong', payload: { text: 'ä'.repeat(LIMIT / 2) } }), 'too_large')
  t.equal(link?.send({ packetId: 'p' as PacketId, type: 'pong', payload: { text: 'x'.repeat(LIMIT / 2) } }), 'queued')
  await client.frame(0)
  link?.close(4000, '👋'.repeat(100))
  const { code, reason } = await client.closed
  t.equal(code, 4000)
  t.equal(reason, '👋'.repeat(30))
})

t.test('closes only the link on which a bug was met', async (t) => {
  const { ws, route, events } = await listening(t)
  const [bad, good] = [await connect(ws), await connect(ws)]
  route.onEachPacket = (link) => {
    if (link === route.links[0]) throw new Error('invented bug')
  }
  bad.send(packet())
  t.match(await bad.closed, { code: 1011 })
  good.send(packet({ request_id: 'good' }))
  while (route.packets.at(-1)?.requestId !== 'good') await once(route, 'packet')
  t.match(events, [{ kind: 'failed', route: 'telegram', error: { message: 'invented bug' } }, { kind: 'closed', reason: 'internal_error' }])
})

t.test('says full when a slow reader does not take more, and tells the route when there is room again', async (t) => {
  const { ws, route } = await listening(t, { limits: { maxFrameBytes: 65_536 } })
  const client = await connect(ws)
  const [link] = route.links
  client.socket.pause()
  let queued = 0
  const send = (): string => link?.send({ packetId: `p${queued}` as PacketId, type: 'pong', payload: { filler: 'x'.repeat(60_000) } }) ?? 'closed'
  let verdict = send()
  for (; verdict === 'queued' && queued < 10_000; verdict = send()) queued += 1
  t.equal(verdict, 'full')
  t.equal(send(), 'full')

  let drains = 0
  route.on('drain', () => (drains += 1))
  const drained = once(route, 'drain')
  client.socket.resume()
  t.equal((await drained)[0], link)
  t.equal(send(), 'queued')
  await client.frame(queued)
  t.equal(drains, 1)
  t.same(client.frames.map((frame) => (JSON.parse(frame) as { packet_id: string }).packet_id), Array.from({ length: queued + 1 }, (_, i) => `p${i}`))
})
