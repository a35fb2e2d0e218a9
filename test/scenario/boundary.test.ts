import t from 'tap'
import { openChannel, stand, until } from '../helper/stand.js'

t.test('forbidden fields of a push are left out and counted; the message goes on (v2 §3)', async (t) => {
  const s = await stand(t)
  const { xagent, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'hello', fields: { session_id: 'sess', user_connector_id: 'u', user_id: 'u', connector_id: 'c', role: 'user', context_token: 'ctx' } })
  const message = await xagent.waitFor('message')
  t.strictSame(Object.keys(message.payload).sort(), ['created_at', 'message_id', 'text'])
  t.equal(await s.metric('deviations_total', { reason: 'forbidden_field' }), 5)
})

t.test('a final with a forbidden field is rejected for good, and nothing is called', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  for (const field of ['session_id', 'user_connector_id', 'user_id', 'connector_id', 'role']) {
    const ack = await xagent.sendFinal(channelId, { messageId: `f_${field}`, text: 'x', fields: { [field]: 'y' } })
    t.match(ack, { type: 'chat.message.ack', payload: { message_id: `f_${field}`, status: 'rejected', code: 'invalid_packet', retryable: false } })
  }
  t.equal(s.connector.toolCalls.length, 0)
  t.equal(await s.metric('messages_total', { direction: 'outbound', outcome: 'invalid' }), 5)
  t.equal(await s.metric('ledger_imbalance', { direction: 'outbound' }), 0)
})

t.test('a final that is not valid: rejected when it names a message, else an error; unknown fields are stripped', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  t.match(await xagent.sendFinal(channelId, { messageId: 'f1' }), { type: 'chat.message.ack', payload: { status: 'rejected', code: 'invalid_packet', retryable: false } })
  t.match(await xagent.sendFinal(channelId, { messageId: 'f2', text: 7 as never }), { type: 'chat.message.ack', payload: { status: 'rejected', code: 'invalid_packet' } })
  t.match(await xagent.sendFinal(channelId, { messageId: '', text: 'x' }), { type: 'error', error: { code: 'invalid_packet' } })
  t.match(await xagent.sendFinal(channelId, { messageId: 'f3', text: 'x', fields: { mood: 'good' } }), { payload: { status: 'accepted' } })
  t.equal(await s.metric('deviations_total', { reason: 'unknown_field' }), 1)
})

t.test('what is not listed is filtered without an answer and counted by reason, from xAgent', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  const silent = ['session.sync_request', 'session.sync_message', 'session.sync_end', 'message.push', 'channel.open.ack', 'ui.projection']
  for (const type of silent) xagent.send({ type, connector_channel_id: channelId, payload: {} })
  xagent.send({ type: 'session.sync_request', request_id: 'req_1', connector_channel_id: channelId, payload: {} })
  const pong = await xagent.request('ping', '', {})
  t.equal(pong.type, 'pong')
  t.strictSame(xagent.events.all('error'), [], 'nothing was answered')
  const count = (reason: string) => s.metric('packets_filtered_total', { direction: 'outbound', reason })
  t.equal(await count('internal_signal'), 4)
  t.equal(await count('not_negotiated'), 1)
  t.equal(await count('wrong_direction'), 1)
  t.equal(await count('unknown_type'), 1)
})

t.test('an unknown request, and only a request, is answered unsupported_packet', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  const answer = await xagent.request('brand.new', channelId, {})
  t.match(answer, { type: 'error', error: { code: 'unsupported_packet' } })
})

t.test('what is not listed is filtered without an answer and counted by reason, from the connector', async (t) => {
  const s = await stand(t)
  const { xagent, legacyId } = await openChannel(s)
  const frame = (type: string, payload: object = {}) => JSON.stringify({ schema: 'xagent.connector.packet/v1', packet_id: `pkt_${type}`, connector_channel_id: legacyId, type, payload })
  for (const type of ['session.sync_message', 'chat.message', 'chat.message.delta', 'chat.activity', 'tool.invoke', 'brand.new']) s.connector.pushBytes(frame(type, { message_id: 'm', text: 'x' }))
  s.connector.push(legacyId, { text: 'the end' })
  await xagent.waitFor('message', ({ text }) => text === 'the end')
  t.equal(xagent.received.length, 1)
  const answered = s.connector.events.all('packet').filter(({ packet }) => packet.type === 'error' || packet.type.endsWith('.ack'))
  t.strictSame(answered, [], 'nothing was answered')
  const count = (reason: string) => s.metric('packets_filtered_total', { direction: 'inbound', reason })
  t.equal(await count('internal_signal'), 1)
  t.equal(await count('not_negotiated'), 3, 'a connector may not send v2 packets when only v1 is negotiated')
  t.equal(await count('wrong_direction'), 1)
  t.equal(await count('unknown_type'), 1)
})

t.test('a channel whose Descriptor declares another profile pushes nothing', async (t) => {
  const s = await stand(t)
  const { xagent, legacyId } = await openChannel(s)
  const descriptor = { schema: 'xagent.connection/v1', connection: { connector_card_id: 'im.telegram', connector_id: 'c', connector_channel_id: legacyId, target_type: 'im', profile: 'xagent.other.v1', status: 'connected' }, target: { provider: 'telegram', display_name: 'x' } }
  s.connector.pushBytes(JSON.stringify({ schema: 'xagent.connector.packet/v1', packet_id: 'pkt_d', connector_channel_id: legacyId, type: 'connection.descriptor.push', payload: { connection_descriptor: descriptor } }))
  s.connector.push(legacyId, { text: 'hello' })
  await until(async () => (await s.metric('packets_filtered_total', { direction: 'inbound', reason: 'not_negotiated' })) === 1, 'filtered')
  t.equal(xagent.received.length, 0)
})

t.test('deltas and activity are accepted, never sent on; invalid ones are answered with an error', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  xagent.sendActivity(channelId, 'thinking')
  xagent.sendDelta(channelId, { messageId: 'a1', sequence: 1, text: 'The ' })
  xagent.sendDelta(channelId, { messageId: 'a1', sequence: 2, text: 'answer' })
  t.match(await xagent.sendFinal(channelId, { messageId: 'a1', text: 'The answer' }), { payload: { status: 'accepted' } })
  t.strictSame(s.connector.sent.map(({ text }) => text), ['The answer'], 'once, and only the final')
  xagent.sendDelta(channelId, { messageId: 'a2', sequence: 0, text: 'x' })
  t.match(await xagent.waitFor('error'), { error: { code: 'invalid_packet' } })
  xagent.sendActivity(channelId, 'tool')
  await xagent.events.atLeast('error', 2)
})

t.test('hello: card, version and profiles', async (t) => {
  const s = await stand(t)
  const xagent = s.xagent()
  await xagent.dial()
  t.match(await xagent.request('channel.open', '', {}), { type: 'error', error: { code: 'hello_required' } })
  t.match(await xagent.hello({ connector_card_id: 'im.other' }), { type: 'error', error: { code: 'connector_card_id_mismatch' } })
  for (const version of [undefined, '2.9', 'x', '1.0', 3]) {
    t.match(await xagent.hello({ protocol_version: version }), { type: 'error', error: { code: 'protocol_version_unsupported' } })
  }
  for (const profiles of [undefined, [], ['xagent.im.v1'], 'xagent.im.v2']) {
    t.match(await xagent.hello({ supported_profiles: profiles }), { type: 'error', error: { code: 'profile_not_supported' } })
  }
  for (const version of ['3.0', '3.10', '4.2']) {
    t.match(await xagent.hello({ protocol_version: version }), { type: 'connector.hello.ack', payload: { connector_card_id: 'im.telegram', connector_id: /^.+$/, protocol_version: '3.0' } })
  }
})

t.test('with an empty store a hello\'s connector_id is kept, later ones do not change it', async (t) => {
  const s = await stand(t, { store: 'lmdb' })
  const first = s.xagent({ connectorId: 'conn_of_old' })
  await first.connect()
  t.equal(first.connectorId, 'conn_of_old')
  const second = s.xagent({ connectorId: 'conn_of_another' })
  await second.connect()
  t.equal(second.connectorId, 'conn_of_old')
  await s.restartGateway()
  const third = s.xagent()
  await third.connect()
  t.equal(third.connectorId, 'conn_of_old')
})

t.test('user packets need an open channel of this link', async (t) => {
  const s = await stand(t)
  const { xagent } = await openChannel(s)
  t.match(await xagent.sendFinal('cch_unknown', { messageId: 'f', text: 'x' }), { type: 'error', error: { code: 'channel_not_open' } })
  t.match(await xagent.request('connection.descriptor.get', '', {}), { type: 'error', error: { code: 'connector_channel_id_required' } })
})

t.test('the bot token in an error reaches no ack, log, metric or dead letter', async (t) => {
  const s = await stand(t, { store: 'lmdb' })
  const { xagent, channelId } = await openChannel(s)
  const token = '7000001:AAinvented-token-0000000000000000000'
  const message = `发送 Telegram 消息失败: Post "https://platform.example/bot${token}/sendMessage": context deadline exceeded`
  s.connector.onTool(() => ({ kind: 'error', error: { code: 'tool_invoke_failed', message } }))
  const ack = await xagent.sendFinal(channelId, { messageId: 'f1', text: 'x' })
  t.match(ack, { payload: { status: 'rejected', code: 'delivery_in_doubt', retryable: false } })
  t.match(await xagent.request('tool.invoke', channelId, { tool_id: 'telegram_message_send', arguments: { text: 'x', connector_channel_id: channelId } }), { error: { code: 'delivery_in_doubt' } })
  const everything = JSON.stringify(xagent.events.all('packet')) + s.logText() + (await s.metricsText())
  t.notMatch(everything, /AAinvented/)
  t.match(s.logText(), /context deadline exceeded/, 'what the connector said is in the log, without the token')
  await s.gateway.stop('to read the store')
  const { readFile } = await import('node:fs/promises')
  t.notMatch((await readFile(`${s.folder}/store/gateway.mdb`)).toString('latin1'), /AAinvented/)
})
