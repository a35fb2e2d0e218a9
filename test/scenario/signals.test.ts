/** Deltas and activity over the wire (v2 §6, §8): they are signals; no message depends on them. */
import t from 'tap'
import { balanced, heard, reached } from '../helper/people.js'
import { openChannel, stand, until, type Stand } from '../helper/stand.js'
import type { WirePacket } from '../../src/sim/wire-packet.js'
import type { SimXagent } from '../../src/sim/xagent.js'

/** What answers a packet that expects no answer. */
const refusal = (xagent: SimXagent, packet: WirePacket) => xagent.waitFor('error', ({ reply_to: to }) => to === packet.packet_id)
const streams = (s: Stand, count: number) => until(async () => (await s.metric('delta_streams')) === count, `${count} streams are open`)

t.test('a gap in a stream is answered with an error and ends the stream; the final is not affected', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  xagent.sendDelta(channelId, { messageId: 'a', sequence: 1, text: 'one ' })
  await streams(s, 1)
  const gap = xagent.sendDelta(channelId, { messageId: 'a', sequence: 3, text: 'three' })
  t.match(await refusal(xagent, gap), { type: 'error', connector_channel_id: channelId, error: { code: 'delta_sequence_gap' } })
  await streams(s, 0)
  for (const sequence of [2, 4, 5]) xagent.sendDelta(channelId, { messageId: 'a', sequence, text: 'more' })
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'one two three' }), { payload: { status: 'accepted' } })
  t.equal(xagent.events.all('error').length, 1, 'what follows is only counted')
  t.equal(await s.metric('deviations_total', { reason: 'delta_ignored' }), 3)
  t.strictSame(reached(s.connector).map(([, text]) => text), ['one two three'], 'no delta is ever sent')
  await balanced(s)
})

t.test('a repeat with the same text is ignored; one with other text is answered with an error and ends the stream', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  for (const [sequence, text] of [[1, 'one '], [2, 'two'], [1, 'one '], [2, 'two']] as const) xagent.sendDelta(channelId, { messageId: 'a', sequence, text })
  await xagent.ping()
  t.equal(xagent.events.all('error').length, 0)
  await streams(s, 1)
  const other = xagent.sendDelta(channelId, { messageId: 'a', sequence: 2, text: 'zwei' })
  t.match(await refusal(xagent, other), { type: 'error', connector_channel_id: channelId, error: { code: 'delta_sequence_conflict' } })
  await streams(s, 0)
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'one two' }), { payload: { status: 'accepted' } })
  t.equal(xagent.events.all('error').length, 1)
})

t.test('a stream whose final does not come is forgotten; its end may still come', async (t) => {
  const s = await stand(t, { config: 'deltas: { ttl: 1s, sweep_interval: 100ms }' })
  const { xagent, channelId } = await openChannel(s)
  for (let i = 0; i < 3; i += 1) xagent.sendDelta(channelId, { messageId: `m${i}`, sequence: 1, text: 'one' })
  await streams(s, 3)
  await streams(s, 0)
  const late = xagent.sendDelta(channelId, { messageId: 'm0', sequence: 2, text: 'two' })
  t.match(await refusal(xagent, late), { error: { code: 'delta_sequence_gap' } })
  t.match(await xagent.sendFinal(channelId, { messageId: 'm1', text: 'one two' }), { payload: { status: 'accepted' } })
  t.equal(xagent.events.all('error').length, 1)
  await balanced(s)
})

t.test('a delta that is none is answered with an error, and touches no stream', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  const bad: readonly Record<string, unknown>[] = [
    { sequence: 1, text: 'x' }, { message_id: 'a', text: 'x' }, { message_id: 'a', sequence: 0, text: 'x' }, { message_id: 'a', sequence: 1.5, text: 'x' },
    { message_id: 'a', sequence: '1', text: 'x' }, { message_id: 'a', sequence: 1, text: 7 },
  ]
  for (const payload of bad) {
    const packet = xagent.send({ type: 'chat.message.delta', connector_channel_id: channelId, payload })
    t.match(await refusal(xagent, packet), { error: { code: 'invalid_packet' } }, JSON.stringify(payload))
  }
  const elsewhere = xagent.sendDelta('cch_never_opened', { messageId: 'a', sequence: 1, text: 'x' })
  t.match(await refusal(xagent, elsewhere), { error: { code: 'channel_not_open' } })
  t.equal(await s.metric('delta_streams'), 0)
})

t.test('10,000 streams at once do not hurt other messages, and no more are kept than may be', async (t) => {
  const s = await stand(t, { config: 'limits: { packets_per_second: 1000000 }' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  const other = await openChannel(s)
  for (let i = 0; i < 10_000; i += 1) {
    xagent.sendDelta(channelId, { messageId: `m${i}`, sequence: 1, text: 'a beginning without an end' })
    if (i % 1_000 === 0) s.connector.push(i % 2_000 === 0 ? legacyId : other.legacyId, { text: `message ${i}` })
  }
  await xagent.events.atLeast('message', 5)
  await other.xagent.events.atLeast('message', 5)
  t.match(await xagent.sendFinal(channelId, { messageId: 'm0', text: 'an end' }), { payload: { status: 'accepted' } })
  t.match(await xagent.sendFinal(channelId, { messageId: 'm9999', text: 'another end' }), { payload: { status: 'accepted' } })
  t.match(await other.xagent.sendFinal(other.channelId, { messageId: 'b', text: 'elsewhere' }), { payload: { status: 'accepted' } })
  t.strictSame(heard(xagent), [0, 2_000, 4_000, 6_000, 8_000].map((i) => `message ${i}`))
  t.ok((await s.metric('delta_streams')) <= 1_000)
  t.ok((await s.metric('overflow_total', { kind: 'delta_streams' })) >= 9_000)
  t.equal(xagent.events.all('error').length, 0)
  t.equal(xagent.events.all('closed').length, 0)
  t.equal(reached(s.connector).length, 3)
  await balanced(s)
})

t.test('activity that is none is answered with an error', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  for (const payload of [{}, { status: 'sleeping' }, { status: 1 }, { status: ['idle'] }, { status: 'idle', tool_name: 7 }]) {
    const packet = xagent.send({ type: 'chat.activity', connector_channel_id: channelId, payload })
    t.match(await refusal(xagent, packet), { type: 'error', connector_channel_id: channelId, error: { code: 'invalid_packet' } }, JSON.stringify(payload))
  }
  for (const status of ['thinking', 'tool', 'idle']) xagent.sendActivity(channelId, status, status === 'tool' ? 'search' : undefined)
  await xagent.ping()
  t.equal(xagent.events.all('error').length, 5)
  t.equal(await s.metric('deviations_total', { reason: 'activity_invalid' }), 5)
})

t.test('a typing tool that fails touches no message', async (t) => {
  const failures = {
    refused: { kind: 'error', error: { code: 'tool_invoke_failed', message: 'wechat typing: WeChat API HTTP 401' } },
    unknown: { kind: 'error', shape: 'error', error: { code: 'unsupported_packet', message: 'unknown tool_id: wechat_typing' } },
    cut: { kind: 'drop_socket', when: 'before_effect' },
    silent: { kind: 'no_answer' },
  } as const
  for (const [name, failure] of Object.entries(failures)) {
    // A call without an answer is waited for when the gateway stops.
    const s = await stand(t, { kind: 'wechat', config: 'delivery: { drain_timeout: 500ms }' })
    const { xagent, channelId, legacyId } = await openChannel(s)
    s.connector.onTool(({ toolId }) => (toolId === 'wechat_typing' ? failure : undefined))
    s.connector.push(legacyId, { text: 'hello', senderId: 'u_ann@im.wechat' })
    await xagent.waitFor('message')
    await xagent.request('connection.descriptor.get', channelId, {})
    xagent.sendActivity(channelId, 'thinking')
    await s.connector.waitFor('tool', ({ toolId }) => toolId === 'wechat_typing')
    t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'to Ann' }), { payload: { status: 'accepted' } }, name)
    xagent.sendActivity(channelId, 'idle')
    await until(async () => (await s.metric('turns_total', { end: 'certain' })) === 1, `the turn has certainly ended: ${name}`)
    t.strictSame(reached(s.connector), [['u_ann@im.wechat', 'to Ann']], name)
    t.match(xagent.descriptors.get(channelId), { connection: { status: 'connected' } }, `${name}: the account is not doubted`)
    t.equal(await s.metric('dead_letters'), 0, name)
    t.equal(xagent.events.all('error').length, 0, name)
    await balanced(s)
  }
})
