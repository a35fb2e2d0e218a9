import t from 'tap'
import { openChannel, stand, until } from '../helper/stand.js'

const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
const packet = (fields: Record<string, unknown>) => JSON.stringify({ schema: 'xagent.connector.packet/v1', packet_id: 'p', ...fields })

t.test('a connector that sends nonsense of every kind: the process lives, its other channel goes on', async (t) => {
  const s = await stand(t)
  const { xagent, legacyId } = await openChannel(s)
  const push = (payload: string) => `{"schema":"xagent.connector.packet/v1","packet_id":"p","connector_channel_id":"${legacyId}","type":"message.push","payload":${payload}}`
  const frames = [
    'no json', '', '[]', 'null', '7', '{', nested(100_000), packet({ type: 7 }), packet({ type: '' }), packet({ type: 'message.push', payload: [] }), packet({ type: 'x', time: -1 }),
    packet({ type: 'x', connector_channel_id: 'c'.repeat(5_000) }), '{"schema":"other","packet_id":"p","type":"message.push"}',
    push(nested(50_000).replace(/^\[/, '{"raw_text":[').slice(0, -1) + ']}'), push('{"event_kind":"im.message.received","message_id":"1","raw_text":"\\ud800"}'),
    push('{"__proto__":{"raw_text":"x"},"constructor":1,"event_kind":"im.message.received"}'), push(`{"event_kind":"im.message.received","message_id":"__proto__","raw_text":"proto","media":${nested(10_000)}}`),
    packet({ type: 'connection.descriptor.push', connector_channel_id: legacyId, payload: { connection_descriptor: { connection: { status: 7, profiles: [7] } } } }),
    `{"schema":"xagent.connector.packet/v1","packet_id":"p","connector_channel_id":"${legacyId}","type":"connection.descriptor.push","payload":{"connection_descriptor":{"connection":{},"x":${nested(50_000)}}}}`,
    packet({ type: 'tool.invoke.ack', request_id: 'unknown', payload: {} }), packet({ type: 'channel.open.ack', request_id: 'unknown', payload: { connector_channel_id: 'z' } }),
    packet({ type: 'connector.hello.ack', payload: { connector_id: 'other' } }), packet({ type: 'error', error: { code: 'x'.repeat(10_000) } }),
  ]
  for (const frame of frames) s.connector.pushBytes(frame)
  s.connector.push(legacyId, { text: 'still here' })
  await xagent.waitFor('message', ({ text }) => text === 'still here')
  t.equal(s.connector.events.all('disconnect').length, 0)
  t.ok((await s.metric('packets_filtered_total', { direction: 'inbound', reason: 'undecodable' })) >= 10)
  t.equal(await s.metric('ledger_imbalance', { direction: 'inbound' }), 0)
  t.notOk(s.logs.some((line) => String(line['msg']).includes('this is a bug')))
})

t.test('an xAgent that sends nonsense of every kind: answered or closed with a reason, others unaffected', async (t) => {
  const s = await stand(t)
  const good = await openChannel(s)
  const bad = s.xagent()
  await bad.connect()
  const { channelId } = await bad.openChannel()
  const final = (payload: string) => bad.sendRaw(`{"schema":"xagent.connector.packet/v1","packet_id":"p","connector_channel_id":"${channelId}","type":"chat.message","payload":${payload}}`)
  final(`{"message_id":"deep","text":${nested(50_000)}}`)
  final(`{"message_id":"deep","text":"x","files":${nested(50_000)}}`)
  final('{"message_id":"\\ud800","text":"\\udc00"}')
  final('{"__proto__":{"message_id":"x"},"text":"x"}')
  t.match(await bad.request('tool.invoke', channelId, { tool_id: '__proto__', arguments: {} }), { error: { code: 'tool_not_available' } })
  t.match(await bad.request('auth.start', channelId, { flow_id: 'telegram_bot_binding', input: JSON.parse(nested(500)) as object }), { error: { code: 'invalid_packet' } })
  t.match(await bad.request('tool.invoke', channelId, { tool_id: 'telegram_message_send', arguments: { text: JSON.parse(nested(500)) as object } }), { error: { code: 'invalid_packet' } })
  t.match(await bad.sendFinal(channelId, { messageId: '__proto__', text: 'x' }), { payload: { message_id: '__proto__', status: 'rejected' } }, 'nobody is signed in on this channel')
  t.match(await bad.request('ping', '', {}), { type: 'pong' })
  bad.sendBinary(Buffer.from('x'))
  t.match(await bad.waitFor('closed'), { code: 1003 })
  s.connector.push(good.legacyId, { text: 'still here' })
  t.equal((await good.xagent.waitFor('message')).text, 'still here')
})

t.test('a slow reader: a thousand messages wait for it without a loss, in order, once', { timeout: 60_000 }, async (t) => {
  const s = await stand(t, { config: 'delivery: { window: 50, ack_timeout: 20s }' })
  const { xagent, legacyId } = await openChannel(s)
  let release = (): void => {}
  const held = new Promise<void>((resolve) => { release = resolve })
  let first = true
  xagent.onMessage(async () => {
    if (first) { first = false; await held }
    return 'accepted' as const
  })
  for (let i = 0; i < 1_000; i += 1) s.connector.push(legacyId, { text: `${i} ${'x'.repeat(2_000)}` })
  await until(async () => (await s.metric('pending_messages', { direction: 'inbound' })) > 0, 'they wait')
  release()
  await until(async () => (await s.metric('messages_total', { direction: 'inbound', outcome: 'accepted' })) === 1_000, 'all are accepted', 40_000)
  const texts = xagent.received.map(({ text }) => Number(text.split(' ')[0]))
  t.equal(new Set(texts).size, 1_000)
  t.equal(xagent.received.filter(({ repeated }) => repeated).length, 0)
  t.equal(await s.metric('ledger_imbalance', { direction: 'inbound' }), 0)
})

t.test('two channels of one connector do not mix', async (t) => {
  const s = await stand(t)
  const one = await openChannel(s)
  const two = await one.xagent.openChannel()
  const legacyTwo = s.connector.channels().map(({ channelId }) => channelId).find((id) => id !== one.legacyId) ?? ''
  s.connector.signIn(legacyTwo)
  s.connector.push(one.legacyId, { text: 'for one' })
  s.connector.push(legacyTwo, { text: 'for two' })
  await one.xagent.events.atLeast('message', 2)
  t.strictSame(one.xagent.received.map(({ channelId, text }) => [channelId, text]).sort(), [[one.channelId, 'for one'], [two.channelId, 'for two']].sort())
})
