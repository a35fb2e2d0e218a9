import t from 'tap'
import { upload } from '../helper/upload.js'
import { until } from '../helper/stand.js'
import { relayStand } from '../helper/relay-stand.js'

const file = (more: Record<string, unknown> = {}) => ({ type: 'image', file_ref: 'file_1', filename: 'a.png', mime_type: 'image/png', byte_size: 3, download_url: 'https://files.example/a.png', ...more })

const PICTURE = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')

t.test('the connector is spoken to in v2 alone, and keeps its ids to its side', async (t) => {
  const s = await relayStand(t)
  const { xagent, channelId, southId } = await s.relayed()
  const hello = await s.acme.waitFor('hello')
  t.strictSame(hello.payload['supported_profiles'], ['xagent.im.v2'])
  t.equal(hello.payload['protocol_version'], '3.0')
  const sent = s.acme.write(southId, { message_id: 'u1', text: 'hello' })
  await s.acme.waitFor('ack')
  await xagent.sendFinal(channelId, { messageId: 'a1', text: 'hi' })
  t.not(channelId, southId)
  const north = JSON.stringify(xagent.events.all('packet'))
  for (const own of [southId, 'instance_v2', sent?.packet_id ?? '']) t.notMatch(north, own, 'nothing of the connector\'s ids reaches xAgent')
  t.notMatch(JSON.stringify(s.acme.events.all('packet')), channelId, 'nor the other way')
})

t.test('a message of a person crosses as it is, and xAgent\'s ack finds the packet that it answers', async (t) => {
  const s = await relayStand(t)
  const { xagent, channelId, southId } = await s.relayed()
  const sent = s.acme.write(southId, { message_id: 'u1', text: ' /start as it is ', created_at: 1_790_000_000_000 })
  const message = await xagent.waitFor('message')
  t.strictSame(message.payload, { message_id: 'u1', text: ' /start as it is ', created_at: 1_790_000_000_000 })
  t.equal(message.channelId, channelId)
  const ack = await s.acme.waitFor('ack')
  t.match(ack, { reply_to: sent?.packet_id, connector_channel_id: southId, payload: { message_id: 'u1', status: 'accepted' } })
  t.not(message.packetId, sent?.packet_id)
  t.strictSame(s.acme.pending, [])
  t.equal(await s.count('messages_total', { direction: 'inbound', outcome: 'accepted' }), 0, 'it did not end here')
  t.equal(await s.count('packets_total', { side: 'legacy', type: 'chat.message' }), 1)
  t.equal(await s.count('ack_latency_seconds_count'), 1)
})

t.test('finals, deltas and activity reach the connector, its ack reaches xAgent', async (t) => {
  const s = await relayStand(t)
  const { xagent, channelId, southId } = await s.relayed()
  xagent.sendActivity(channelId, 'tool', 'web_search')
  xagent.sendDelta(channelId, { messageId: 'a1', sequence: 1, text: 'The ' })
  t.match(await xagent.sendFinal(channelId, { messageId: 'a1', text: 'The answer' }), { type: 'chat.message.ack', connector_channel_id: channelId, payload: { message_id: 'a1', status: 'accepted' } })
  t.match(await xagent.sendFinal(channelId, { messageId: 'a1', text: 'The answer' }), { payload: { status: 'duplicate' } })
  const of = (type: string) => s.acme.events.all('packet').filter((packet) => packet.type === type)
  t.match(of('chat.activity'), [{ connector_channel_id: southId, payload: { status: 'tool', tool_name: 'web_search' } }])
  t.match(of('chat.message.delta'), [{ connector_channel_id: southId, payload: { message_id: 'a1', sequence: 1, text: 'The ' } }])
  t.match(of('chat.message'), [{ connector_channel_id: southId, payload: { message_id: 'a1', text: 'The answer' } }, {}])
  t.equal(new Set(of('chat.message').map(({ packet_id }) => packet_id)).size, 2, 'each transmission has an id of its own')
  t.equal(await s.count('messages_total', { direction: 'outbound', outcome: 'accepted' }), 0)
})

t.test('a rejection crosses with its code; its words cross without secrets', async (t) => {
  const s = await relayStand(t)
  const { xagent, channelId } = await s.relayed()
  s.acme.onFinal = { status: 'rejected', code: 'target_delivery_failed', message: 'Post https://platform.example/bot7000001:AAinvented-token-000/send failed', retryable: false, session_id: 'sess' }
  const ack = await xagent.sendFinal(channelId, { messageId: 'a1', text: 'x' })
  t.match(ack, { payload: { message_id: 'a1', status: 'rejected', code: 'target_delivery_failed', retryable: false } })
  t.notMatch(JSON.stringify(ack), /AAinvented|session_id/)
  t.equal(await s.count('deviations_total', { reason: 'forbidden_field' }), 1)
})

t.test('errors that answer what was relayed find their packet', async (t) => {
  const s = await relayStand(t)
  const { xagent, channelId, southId } = await s.relayed()
  const delta = xagent.sendDelta(channelId, { messageId: 'a1', sequence: 7, text: 'x' })
  const relayed = await s.acme.waitFor('packet', ({ type }) => type === 'chat.message.delta')
  s.acme.send(southId, { type: 'error', reply_to: relayed.packet_id, error: { code: 'delta_sequence_gap' } })
  t.match(await xagent.waitFor('error'), { reply_to: delta.packet_id, connector_channel_id: channelId, error: { code: 'delta_sequence_gap' } })
  xagent.onMessage({ kind: 'error', code: 'channel_not_open' })
  const sent = s.acme.write(southId, { message_id: 'u1', text: 'x' })
  t.match(await s.acme.waitFor('packet', ({ type }) => type === 'error'), { reply_to: sent?.packet_id, connector_channel_id: southId, error: { code: 'channel_not_open' } })
})

t.test('what is not listed is filtered in silence, in both directions', async (t) => {
  const s = await relayStand(t)
  const { xagent, channelId, southId } = await s.relayed()
  for (const type of ['message.push', 'chat.message.delta', 'chat.activity', 'session.sync_message', 'brand.new']) s.acme.send(southId, { type, payload: { message_id: 'm', text: 'x', sequence: 1, status: 'idle' } })
  for (const type of ['message.push', 'session.sync_request', 'ui.projection']) xagent.send({ type, connector_channel_id: channelId, payload: {} })
  s.acme.write(southId, { message_id: 'u1', text: 'the end' })
  await s.acme.waitFor('ack')
  t.strictSame(xagent.received.map(({ text }) => text), ['the end'])
  t.strictSame(xagent.events.all('error'), [])
  t.strictSame(s.acme.events.all('packet').filter(({ type }) => !['connector.hello', 'channel.open', 'chat.message.ack', 'ping'].includes(type)), [])
  const count = (direction: string, reason: string) => s.count('packets_filtered_total', { direction, reason })
  t.equal(await count('inbound', 'not_negotiated'), 1, 'a v1 push of a connector that is spoken to in v2')
  t.equal(await count('inbound', 'wrong_direction'), 2)
  t.equal(await count('inbound', 'internal_signal'), 1)
  t.equal(await count('inbound', 'unknown_type'), 1)
  t.equal(await count('outbound', 'internal_signal'), 1)
  t.equal(await count('outbound', 'unknown_type'), 1)
})

t.test('a forbidden field holds a message back in either direction; unknown ones are left out', async (t) => {
  const s = await relayStand(t)
  const { xagent, channelId, southId } = await s.relayed()
  s.acme.write(southId, { message_id: 'u1', text: 'x', user_id: 'u' })
  t.match(await s.acme.waitFor('ack'), { payload: { message_id: 'u1', status: 'rejected', code: 'invalid_packet', retryable: false } })
  t.strictSame(s.acme.pending, [], 'and is not delivered for ever')
  t.match(await xagent.sendFinal(channelId, { messageId: 'a1', text: 'x', fields: { role: 'assistant' } }), { payload: { status: 'rejected', code: 'invalid_packet', retryable: false } })
  s.acme.write(southId, { message_id: 'u2', text: 'y', context_token: 'secret' })
  t.strictSame((await xagent.waitFor('message')).payload, { message_id: 'u2', text: 'y' })
  t.strictSame(s.acme.events.all('final'), [])
  t.equal(await s.count('deviations_total', { reason: 'forbidden_field' }), 2)
  t.equal(await s.count('deviations_total', { reason: 'unknown_field' }), 1)
  t.equal(await s.count('messages_total', { direction: 'inbound', outcome: 'not_forwarded' }), 1)
  t.equal(await s.count('messages_total', { direction: 'outbound', outcome: 'invalid' }), 1)
  for (const direction of ['inbound', 'outbound']) t.equal(await s.count('ledger_imbalance', { direction }), 0)
})

t.test('malformed payloads go no further, and whoever sent them is told', async (t) => {
  const s = await relayStand(t)
  const { xagent, channelId, southId } = await s.relayed()
  const bad = [
    { message_id: 'u1' }, { message_id: 'u2', text: 7 }, { message_id: 'u3', files: [file({ type: 'sticker' })] }, { message_id: 'u4', files: [file({ file_ref: undefined })] },
    { message_id: 'u5', files: [file({ download_url: undefined })] }, { message_id: 'u6', files: [file({ download_url: 'https://user:secret@files.example/a' })] }, { message_id: 'u7', files: [file(), file()] },
  ]
  for (const payload of bad) s.acme.write(southId, payload)
  s.acme.send(southId, { type: 'chat.message', payload: { text: 'without an id' } })
  const acks = await s.acme.events.atLeast('ack', bad.length)
  t.strictSame(acks.map(({ payload }) => [payload?.['message_id'], payload?.['code']]), bad.map(({ message_id }) => [message_id, 'invalid_packet']))
  t.match(await s.acme.waitFor('packet', ({ type }) => type === 'error'), { error: { code: 'invalid_packet' } })
  xagent.sendDelta(channelId, { messageId: 'a1', sequence: 0, text: 'x' })
  xagent.sendActivity(channelId, 'tool')
  await xagent.events.atLeast('error', 2)
  t.match(await xagent.sendFinal(channelId, { messageId: 'a1' }), { payload: { status: 'rejected', code: 'invalid_packet' } })
  t.strictSame(xagent.received, [])
  t.strictSame(s.acme.events.all('packet').filter(({ type }) => ['chat.message', 'chat.message.delta', 'chat.activity'].includes(type)), [])
  t.equal(await s.count('deviations_total', { reason: 'message_invalid' }), bad.length + 2)
})

t.test('nothing is kept: while xAgent is away nothing is acked, and the connector delivers it once it is back', async (t) => {
  const s = await relayStand(t)
  const { xagent, southId } = await s.relayed()
  await xagent.terminate()
  await until(async () => (await s.count('channels_open', { side: 'xagent' })) === 0, 'xAgent is away')
  s.acme.write(southId, { message_id: 'u1', text: 'is anybody there' })
  await until(async () => (await s.count('packets_filtered_total', { direction: 'inbound', reason: 'no_link' })) === 1, 'turned away')
  t.equal(await s.count('pending_messages', { direction: 'inbound' }), 0)
  t.equal(s.acme.pending.length, 1, 'not acked')
  await xagent.reconnect()
  t.match(await s.acme.waitFor('ack'), { payload: { message_id: 'u1', status: 'accepted' } })
  t.strictSame(xagent.received.map(({ messageId }) => messageId), ['u1'], 'delivered once')
  t.strictSame(s.acme.pending, [])
})

t.test('a message whose ack was lost with the link is delivered again, with the same id', async (t) => {
  const s = await relayStand(t)
  const { xagent, southId } = await s.relayed()
  xagent.onMessage('swallowed')
  s.acme.write(southId, { message_id: 'u1', text: 'x' })
  await xagent.waitFor('message')
  xagent.onMessage('accepted')
  await xagent.disconnectAndReopen()
  t.match(await s.acme.waitFor('ack'), { payload: { message_id: 'u1', status: 'duplicate' } })
})

t.test('while the connector is away a final is refused as temporary', async (t) => {
  const s = await relayStand(t)
  const { xagent, channelId } = await s.relayed()
  await s.acme.stop()
  await until(async () => (await s.count('legacy_up')) === 0, 'the connector is away')
  t.match(await xagent.sendFinal(channelId, { messageId: 'a1', text: 'x' }), { payload: { status: 'rejected', code: 'connector_unavailable', retryable: true } })
  xagent.sendActivity(channelId, 'idle')
  await until(async () => (await s.count('packets_filtered_total', { direction: 'outbound', reason: 'no_link' })) === 2, 'counted')
  await s.acme.start()
  await until(async () => (await s.count('channels_open', { side: 'legacy' })) === 1, 'it is back')
  t.match(await xagent.sendFinal(channelId, { messageId: 'a1', text: 'x' }), { payload: { status: 'accepted' } })
})

t.test('acks that match nothing are counted and go no further', async (t) => {
  const s = await relayStand(t)
  const { xagent, channelId, southId } = await s.relayed()
  const ack = (id: string) => ({ type: 'chat.message.ack', reply_to: id, payload: { message_id: 'u1', status: 'accepted' } })
  s.acme.send(southId, ack('pkt_never_sent'))
  xagent.send({ ...ack('pkt_never_sent'), connector_channel_id: channelId })
  xagent.send({ ...ack('pkt_never_sent'), connector_channel_id: 'cch_unknown' })
  await until(async () => (await s.count('acks_orphaned_total', { reason: 'unknown_packet' })) === 2, 'both counted')
  t.equal(await s.count('acks_orphaned_total', { reason: 'unknown_channel' }), 1)
  xagent.onMessage({ kind: 'wrong', messageId: 'another' })
  s.acme.write(southId, { message_id: 'u1', text: 'x' })
  await until(async () => (await s.count('acks_orphaned_total', { reason: 'other_message' })) === 1, 'the message must match, too')
  xagent.onMessage('malformed')
  s.acme.redeliver()
  await until(async () => (await s.count('acks_orphaned_total', { reason: 'malformed' })) === 1, 'and it must be an ack')
  t.strictSame(s.acme.events.all('ack'), [])
  t.equal(s.acme.pending.length, 1)
})

t.test('files: what stands under the connector is fetched through the gateway, uploads are handed on, another host is xAgent\'s to ask', async (t) => {
  const s = await relayStand(t)
  const { xagent, channelId, southId } = await s.relayed()
  s.acme.files.set('file_2', { bytes: PICTURE, contentType: 'image/png', filename: 'a.png', recipient: null })
  s.acme.write(southId, { message_id: 'u1', files: [file({ cdn_key: 'k' }), file({ file_ref: 'file_2', download_url: '/files/refs/file_2' })] })
  const [foreign, own] = (await xagent.waitFor('message')).files as readonly Record<string, string>[]
  t.strictSame(foreign, file())
  t.match(own?.['download_url'], /^\/files\/refs\/file_[\w-]{32}$/)
  const got = await fetch(`${s.baseUrl('acme')}${own?.['download_url']}`)
  t.strictSame(Buffer.from(await got.arrayBuffer()), PICTURE)
  const ref = await upload(s.baseUrl('acme'), channelId, PICTURE, 'r.png')
  t.match(await xagent.sendFinal(channelId, { messageId: 'a1', text: 'see', files: [{ type: 'image', file_ref: ref, filename: 'r.png' }] }), { payload: { status: 'accepted' } })
  const [sent] = s.acme.http.all('upload')
  t.strictSame([sent?.channelId, sent?.bytes], [southId, PICTURE])
  t.match(s.acme.events.all('final'), [{ payload: { files: [{ type: 'image', file_ref: sent?.ref, filename: 'r.png' }] } }])
  t.match(await xagent.sendFinal(channelId, { messageId: 'a2', text: 'see', files: [{ type: 'file', file_ref: 'file_unknown' }] }), { payload: { status: 'rejected', retryable: false } })
})

t.test('tools keep what was written for v2, and are called with all their arguments', async (t) => {
  const tool = {
    tool_id: 'acme_send_file', profile: 'xagent.im.v2', title: 'Send a file', description: 'Uploads via /files/uploads first, then replies in the thread with file_ref.',
    input_schema: { type: 'object', properties: { connector_channel_id: { type: 'string' }, file_ref: { type: 'string', description: 'from /files/uploads' }, reply_token: { type: 'string' } }, required: ['connector_channel_id', 'reply_token'] },
  }
  const s = await relayStand(t, {}, { tools: [tool] })
  const { xagent, channelId, southId } = await s.relayed()
  const card = await xagent.fetchJson('/connector-card.json') as { tools: Record<string, unknown>[] }
  t.match(card.tools, [{ tool_id: 'acme_send_file', profile: 'xagent.im.v2', title: tool.title, description: tool.description, input_schema: tool.input_schema }])
  const answer = await xagent.request('tool.invoke', channelId, { tool_id: 'acme_send_file', arguments: { connector_channel_id: channelId, reply_token: 'r', other: 1 } })
  t.match(answer, { type: 'tool.invoke.ack', payload: { tool_id: 'acme_send_file' } })
  const call = await s.acme.waitFor('packet', ({ type }) => type === 'tool.invoke')
  t.strictSame(call.payload?.['arguments'], { connector_channel_id: southId, reply_token: 'r' })
})

t.test('agents get the connector\'s own Skill, if it has the name that the protocol asks for', async (t) => {
  const skill = (name: string): string => `---\nname: ${name}\ndescription: Acme.\n---\n\n# Acme\n\nAnswer in one sentence.\n`
  const s = await relayStand(t, {}, { skill: skill('connector-im-acme') })
  const { xagent } = await s.relayed()
  const served = await xagent.fetch('/skill.md')
  t.equal(served.text, skill('connector-im-acme'))
  t.equal(served.headers.get('x-xagent-skill-id'), 'connector-im-acme')
  const other = await relayStand(t, {}, { skill: skill('im-connector-reply') })
  const named = await (await other.relayed()).xagent.fetch('/skill.md')
  t.match(named.text, /^---\nname: connector-im-acme\n/, 'another name: a generated one')
  t.notMatch(named.text, /one sentence/)
})
