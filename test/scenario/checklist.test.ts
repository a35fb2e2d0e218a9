/** The consistency checklists of both profiles (v1 §11, v2 §11): one test for each row that concerns complete text messages. */
import t from 'tap'
import { readFileSync } from 'node:fs'
import { openChannel, stand, until } from '../helper/stand.js'
import { Rig } from '../helper/channel-rig.js'

const profilesOf = (descriptor: object) => (descriptor as { connection: { profiles: string[] } }).connection.profiles

t.test('v1 §11.1 Card and Descriptor of the connector are read as xagent.im.v1, in both dialects', async (t) => {
  for (const dialect of ['1.0', '3.0'] as const) {
    const s = await stand(t, { dialect })
    const { xagent, legacyId } = await openChannel(s)
    const [hello] = s.connector.events.all('hello')
    t.strictSame(hello?.payload['supported_profiles'], ['xagent.im.v1'])
    s.connector.push(legacyId, { text: 'hello' })
    t.equal((await xagent.waitFor('message')).text, 'hello')
  }
})

t.test('v1 §11.2 the message_id is stable within its channel: the same push twice is one message', async (t) => {
  const s = await stand(t)
  const { xagent, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'hello', messageId: '11' })
  s.connector.push(legacyId, { text: 'hello', messageId: '11' })
  s.connector.push(legacyId, { text: 'the end', messageId: '12' })
  await xagent.waitFor('message', ({ text }) => text === 'the end')
  t.strictSame(xagent.received.map(({ text }) => text), ['hello', 'the end'])
  t.equal(await s.metric('messages_total', { direction: 'inbound', outcome: 'absorbed' }), 1)
})

t.test('v1 §11.3 after a temporary disconnect the message can still be redelivered', async (t) => {
  const s = await stand(t)
  const { xagent, legacyId } = await openChannel(s)
  xagent.onMessage('none')
  s.connector.push(legacyId, { text: 'hello' })
  const first = await xagent.waitFor('message')
  xagent.onMessage('accepted')
  await xagent.disconnectAndReopen()
  const again = await xagent.waitFor('message', ({ repeated }) => repeated)
  t.equal(again.messageId, first.messageId)
  t.not(again.packetId, first.packetId)
})

t.test('v1 §11.4 TTL, capacity and cleanup are finite', async (t) => {
  const rig = new Rig({ limits: { maxMessages: 3, ttlMs: 60_000 } })
  for (let i = 0; i < 10; i += 1) rig.push(`message ${i}`)
  t.equal(rig.channel.bySeq.size, 3)
  rig.pass(60_000)
  t.equal(rig.channel.bySeq.size, 0)
  t.equal(rig.records('inbound').length, 0)
  t.equal(rig.deadLetters().length, 10, 'none without a record')
})

t.test('v1 §11.5 retries and restarts do not prolong retention', async (t) => {
  const rig = new Rig({ limits: { ttlMs: 60_000 } })
  rig.open()
  rig.push('hello')
  rig.reject(rig.lastTransmit(), 'later', true)
  rig.pass(30_000)
  const after = new Rig({ store: rig.store, now: rig.now, limits: { ttlMs: 60_000 } })
  after.pass(29_999)
  t.equal(after.ended.length, 0)
  after.pass(1)
  t.match(after.ended, [{ outcome: 'expired', ageMs: 60_000 }])
})

t.test('v1 §11.6 accepted, duplicate and rejected end where they must', async (t) => {
  const s = await stand(t, { config: 'delivery: { backoff: { initial: 10ms, max: 20ms } }' })
  const { xagent, legacyId } = await openChannel(s)
  const policies = { accept: 'accepted', repeat: 'duplicate', refuse: { kind: 'rejected', code: 'permission_denied', retryable: false } } as const
  let later = 0
  xagent.onMessage(({ text }) => (text === 'later' ? (later++ < 2 ? { kind: 'rejected', code: 'busy_now', retryable: true } : 'accepted') : policies[text as keyof typeof policies]))
  for (const text of ['accept', 'repeat', 'refuse', 'later']) s.connector.push(legacyId, { text })
  const count = (outcome: string) => s.metric('messages_total', { direction: 'inbound', outcome })
  await until(async () => (await count('accepted')) === 2, 'the last one is accepted')
  t.equal(await count('duplicate'), 1)
  t.equal(await count('rejected'), 1)
  t.equal(xagent.received.filter(({ text }) => text === 'refuse').length, 1)
  t.equal(xagent.received.filter(({ text }) => text === 'later').length, 3)
})

t.test('v1 §11.7 neither the target\'s routing nor authentication material reaches the agent', async (t) => {
  const s = await stand(t)
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'hello', fields: { reply_token: 'token-of-the-chat', context_token: 'ctx-secret', raw_message: { aeskey: 'k' } } })
  await xagent.waitFor('message')
  await xagent.sendFinal(channelId, { messageId: 'f', text: 'x' })
  const north = JSON.stringify(xagent.events.all('packet')) + (await xagent.fetch('/connector-card.json')).text + (await xagent.fetch('/skill.md')).text
  for (const secret of ['token-of-the-chat', 'ctx-secret', 'aeskey', legacyId, s.connector.connectorId ?? '?', 'im-connector-reply', '880000042']) {
    t.notOk(north.replace(/chat 880\*+042/g, '').includes(secret), secret)
  }
})

t.test('v1 §11.8 the actual TTL and capacity are documented and exported', async (t) => {
  const s = await stand(t)
  t.equal(await s.metric('limit', { kind: 'ttl_seconds' }), 3_600)
  t.equal(await s.metric('limit', { kind: 'max_messages' }), 1_000)
  const page = readFileSync(new URL('../../docs/retention.md', import.meta.url), 'utf8')
  for (const fact of ['1 h', '1000', '8 MiB', '30 s']) t.match(page, fact)
})

t.test('v2 §11.1 Card and Descriptor declare xagent.im.v2, and nothing else', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  const card = (await xagent.fetchJson('/connector-card.json')) as { supports: { profiles: string[]; target_types: string[] }; tools: { profile: string }[] }
  t.strictSame(card.supports.profiles, ['xagent.im.v2'])
  t.strictSame(card.supports.target_types, ['im'])
  t.ok(card.tools.every(({ profile }) => profile === 'xagent.im.v2'))
  t.strictSame(profilesOf(xagent.descriptors.get(channelId) ?? {}), ['xagent.im.v2'])
})

t.test('v2 §11.2 deltas and a final, and a final alone', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  xagent.sendDelta(channelId, { messageId: 'streamed', sequence: 1, text: 'Str' })
  xagent.sendDelta(channelId, { messageId: 'streamed', sequence: 2, text: 'eamed' })
  t.match(await xagent.sendFinal(channelId, { messageId: 'streamed', text: 'Streamed' }), { payload: { status: 'accepted' } })
  t.match(await xagent.sendFinal(channelId, { messageId: 'direct', text: 'Direct' }), { payload: { status: 'accepted' } })
  t.strictSame(s.connector.sent.map(({ text }) => text), ['Streamed', 'Direct'])
})

t.test('v2 §11.3 idempotency is by message_id alone: another packet_id is a duplicate, another message_id is not', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'same', packetId: 'p1' }), { payload: { status: 'accepted' } })
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'same', packetId: 'p2' }), { payload: { status: 'duplicate' } })
  t.match(await xagent.sendFinal(channelId, { messageId: 'b', text: 'same', packetId: 'p3' }), { payload: { status: 'accepted' } })
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'other', packetId: 'p4' }), { payload: { status: 'rejected', code: 'message_id_conflict', retryable: false } })
  t.equal(s.connector.sent.length, 2)
})

t.test('v2 §11.4 acks match reply_to, channel and message strictly, in both directions', async (t) => {
  const s = await stand(t)
  const { xagent, channelId, legacyId } = await openChannel(s)
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'x', packetId: 'p1' }), { reply_to: 'p1', connector_channel_id: channelId, payload: { message_id: 'a' } })
  xagent.onMessage('none')
  s.connector.push(legacyId, { text: 'hello' })
  const { packetId, messageId } = await xagent.waitFor('message')
  const ack = (fields: object, id = messageId) => xagent.send({ type: 'chat.message.ack', reply_to: packetId, connector_channel_id: channelId, payload: { message_id: id, status: 'accepted' }, ...fields })
  ack({ reply_to: 'pkt_other' })
  ack({ connector_channel_id: 'cch_other' })
  ack({}, 'm_other')
  await xagent.request('ping', '', {})
  t.equal(await s.metric('pending_messages', { direction: 'inbound' }), 1)
  ack({})
  await until(async () => (await s.metric('pending_messages', { direction: 'inbound' })) === 0, 'the right one counts')
})

t.test('v2 §11.5 no temporary text is sent to a platform that cannot stream', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  for (let sequence = 1; sequence <= 20; sequence += 1) xagent.sendDelta(channelId, { messageId: 'a', sequence, text: 'word ' })
  await xagent.request('ping', '', {})
  t.equal(s.connector.toolCalls.length, 0)
})

t.test('v2 §11.6 completed-message state is bounded in time and number', async (t) => {
  const rig = new Rig({ limits: { maxMessages: 2 } })
  rig.open()
  for (let i = 0; i < 21; i += 1) {
    rig.push(`message ${i}`)
    rig.ack(rig.lastTransmit(), { status: 'accepted' })
  }
  t.equal(rig.of('trim_completed').length, 1, 'beyond 10 × max_messages the oldest is to go')
  const [completed] = rig.records<{ until: number; endedAt: number }>('completed')
  t.equal((completed?.until ?? 0) - (completed?.endedAt ?? 0), 3_600_000)
})

t.test('v2 §11.7 internal fields are absent from everything that crosses', async (t) => {
  const s = await stand(t)
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'hello', fields: { session_id: 's', user_id: 'u', user_connector_id: 'c', connector_id: 'c', role: 'user' } })
  const message = await xagent.waitFor('message')
  t.strictSame(Object.keys(message.payload).sort(), ['created_at', 'message_id', 'text'])
  await xagent.request('tool.invoke', channelId, { tool_id: 'telegram_message_send', arguments: { text: 'x', session_id: 's' }, context: { session_id: 's', tool_call_id: 't' } })
  t.notMatch(JSON.stringify(s.connector.toolCalls), /session_id/)
})

t.test('v2 §11.10 session synchronisation, history and replay are excluded in both directions', async (t) => {
  const s = await stand(t)
  const { xagent, channelId, legacyId } = await openChannel(s)
  for (const type of ['session.sync_request', 'session.sync_message', 'session.sync_end']) {
    xagent.send({ type, request_id: `r_${type}`, connector_channel_id: channelId, payload: { messages: ['x'] } })
    s.connector.pushBytes(JSON.stringify({ schema: 'xagent.connector.packet/v1', packet_id: type, connector_channel_id: legacyId, type, payload: {} }))
  }
  t.match(await xagent.request('ping', '', {}), { type: 'pong' })
  await until(async () => (await s.metric('packets_filtered_total', { direction: 'inbound', reason: 'internal_signal' })) === 3, 'filtered towards xAgent')
  t.equal(await s.metric('packets_filtered_total', { direction: 'outbound', reason: 'internal_signal' }), 3)
  t.notOk(xagent.events.all('packet').some(({ type }) => type.startsWith('session.') || type === 'error'))
  t.notOk(s.connector.events.all('packet').some(({ packet }) => packet.type.startsWith('session.')))
})

t.test('v2 §11.11 a reconnect restores unfinished delivery alone', async (t) => {
  const s = await stand(t)
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'finished' })
  await until(async () => (await s.metric('messages_total', { direction: 'inbound', outcome: 'accepted' })) === 1, 'accepted')
  await xagent.sendFinal(channelId, { messageId: 'f', text: 'the answer' })
  await xagent.terminate()
  s.connector.push(legacyId, { text: 'unfinished' })
  await until(async () => (await s.metric('pending_messages', { direction: 'inbound' })) === 1, 'it waits')
  await xagent.reconnect()
  await xagent.waitFor('message', ({ text }) => text === 'unfinished')
  t.strictSame(xagent.received.map(({ text }) => text), ['finished', 'unfinished'])
  t.equal(s.connector.sent.length, 1)
})

t.test('v2 §11.12 chat.activity comes with IM v2 and is a harmless no-op where the platform shows none', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  xagent.sendActivity(channelId, 'thinking')
  xagent.sendActivity(channelId, 'tool', 'web_search')
  xagent.sendActivity(channelId, 'idle')
  t.match(await xagent.request('ping', '', {}), { type: 'pong' })
  t.equal(xagent.events.all('error').length, 0)
  t.equal(s.connector.toolCalls.length, 0)
})
