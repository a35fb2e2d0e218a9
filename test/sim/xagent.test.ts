import t from 'tap'
import type { SimConnector } from '../../src/sim/connector.js'
import { SimXagent } from '../../src/sim/xagent.js'
import type { WirePacket } from '../../src/sim/wire-packet.js'
import { client, gate, running, signedIn } from './connected.js'

/** A `chat.message` frame to the client, as a v2 connector would send it. */
function message(connector: SimConnector, channelId: string, packetId: string, messageId: string): void {
  connector.pushBytes(JSON.stringify({
    schema: 'xagent.connector.packet/v1', packet_id: packetId, connector_channel_id: channelId, type: 'chat.message', time: 1_790_000_000_000,
    payload: { message_id: messageId, text: 'hi', created_at: 1_790_000_000_000 },
  }))
}

/** What the other side got from the client as an answer to a packet. */
const answerTo = async (connector: SimConnector, packetId: string): Promise<WirePacket> =>
  (await connector.waitFor('packet', ({ packet }) => packet.reply_to === packetId)).packet

void t.test('accepts a message and answers its redelivery as a duplicate, matching packet, channel and message', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  message(connector, channelId, 'p1', 'm1')
  message(connector, channelId, 'p2', 'm1')
  for (const [packetId, status] of [['p1', 'accepted'], ['p2', 'duplicate']] as const) {
    const ack = await answerTo(connector, packetId)
    t.match(ack, { type: 'chat.message.ack', reply_to: packetId, connector_channel_id: channelId, payload: { message_id: 'm1', status } })
  }
  t.match(xagent.received, [{ packetId: 'p1', messageId: 'm1', text: 'hi', repeated: false }, { packetId: 'p2', repeated: true }])
})

void t.test('has the message though its ack was swallowed, and not when it stayed silent', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  for (const [policy, status] of [['swallowed', 'duplicate'], ['none', 'accepted']] as const) {
    xagent.onMessage(({ repeated }) => (repeated ? 'accepted' : policy))
    message(connector, channelId, `${policy}-1`, policy)
    message(connector, channelId, `${policy}-2`, policy)
    t.equal((await answerTo(connector, `${policy}-2`)).payload?.['status'], status)
  }
  t.notOk(connector.events.all('packet').some(({ packet }) => packet.reply_to === 'none-1' || packet.reply_to === 'swallowed-1'))
})

void t.test('acks as scripted: rejected, malformed, for something else, by an error packet, by raw frames', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  xagent.onMessage({ kind: 'rejected', code: 'channel_busy', retryable: true })
  message(connector, channelId, 'p1', 'm1')
  t.same((await answerTo(connector, 'p1')).payload, { message_id: 'm1', status: 'rejected', code: 'channel_busy', retryable: true })
  xagent.onMessage('malformed')
  message(connector, channelId, 'p2', 'm1')
  t.notOk(['accepted', 'duplicate', 'rejected'].includes(String((await answerTo(connector, 'p2')).payload?.['status'])))
  xagent.onMessage({ kind: 'wrong', messageId: 'other', channelId: 'cch_other', replyTo: 'p0' })
  message(connector, channelId, 'p3', 'm1')
  t.match(await answerTo(connector, 'p0'), { connector_channel_id: 'cch_other', payload: { message_id: 'other', status: 'accepted' } })
  xagent.onMessage({ kind: 'error', code: 'invalid_packet' })
  message(connector, channelId, 'p4', 'm1')
  t.match(await answerTo(connector, 'p4'), { type: 'error', error: { code: 'invalid_packet' } })
  xagent.onMessage({ kind: 'raw', frames: [{ type: 'odd', reply_to: 'p5' }] })
  message(connector, channelId, 'p5', 'm1')
  t.same(await answerTo(connector, 'p5'), { type: 'odd', reply_to: 'p5' })
})

void t.test('a policy can take its time; an ack that is decided after the link is gone is lost', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  const decision = gate()
  xagent.onMessage(() => decision.opened.then(() => 'accepted' as const))
  message(connector, channelId, 'p1', 'm1')
  await xagent.waitFor('message')
  await xagent.terminate()
  decision.open()
  await xagent.reconnect()
  t.notOk(connector.events.all('packet').some(({ packet }) => packet.reply_to === 'p1'))
})

void t.test('sends finals, deltas and activity in the shapes of v2, and resolves a final with what answers it', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  xagent.sendDelta(channelId, { messageId: 'a1', sequence: 1, text: 'The' })
  xagent.sendActivity(channelId, 'tool', 'web_search')
  const final = xagent.sendFinal(channelId, { messageId: 'a1', text: 'The answer', fields: { role: 'assistant' } })
  const sent = async (type: string) => (await connector.waitFor('packet', ({ packet }) => packet.type === type)).packet
  t.same((await sent('chat.message.delta')).payload, { message_id: 'a1', sequence: 1, text: 'The' })
  t.same((await sent('chat.activity')).payload, { status: 'tool', tool_name: 'web_search' })
  const packet = await sent('chat.message')
  t.match(packet, { connector_channel_id: channelId, payload: { message_id: 'a1', text: 'The answer', role: 'assistant' } })
  connector.pushBytes(JSON.stringify({
    packet_id: 'x', type: 'chat.message.ack', reply_to: packet.packet_id, connector_channel_id: channelId,
    payload: { message_id: 'a1', status: 'accepted' },
  }))
  t.equal((await final).payload?.['status'], 'accepted')
})

void t.test('a request that the end of the link leaves unanswered is rejected', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  const final = xagent.sendFinal(channelId, { messageId: 'a1', text: 'x' })
  await xagent.terminate()
  await t.rejects(final, /closed with 1006/)
})

void t.test('re-opens every channel at once after a disconnect, with the stored connector_id', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  const second = await xagent.openChannel()
  connector.signIn(second.channelId)
  const before = xagent.connectorId
  const opened = await xagent.disconnectAndReopen()
  t.same(opened.map((channel) => channel.channelId), [channelId, second.channelId])
  t.equal(xagent.connectorId, before)
})

void t.test('records Descriptors that are pushed, and answers a ping', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  const payload = { connection_descriptor: { connection: { status: 'offline' } } }
  connector.pushBytes(JSON.stringify({ packet_id: 'd', type: 'connection.descriptor.push', connector_channel_id: channelId, payload }))
  t.match(await xagent.waitFor('descriptor'), { channelId, descriptor: { connection: { status: 'offline' } } })
  connector.pushBytes(JSON.stringify({ packet_id: 'q', type: 'ping', request_id: 'r1', payload: {} }))
  t.equal((await connector.waitFor('packet', ({ packet }) => packet.type === 'pong')).packet.request_id, 'r1')
})

void t.test('rejects a connection that nobody listens for, and a hello that is refused', async (t) => {
  const connector = await running(t)
  const xagent = await client(t, connector)
  t.equal((await xagent.hello({ connector_card_id: 'im.other' })).error?.code, 'connector_card_id_mismatch')
  await connector.stop()
  await t.rejects(new SimXagent({ baseUrl: connector.url }).dial(), /ECONNREFUSED/)
})
