/** Feishu: one app with many private chats and groups, a plain send that goes to whoever wrote last, pushes out of order. */
import t from 'tap'
import { accepted, balanced, heard, problems, reached, run, seen, waiting } from '../helper/people.js'
import { openChannel, stand, until } from '../helper/stand.js'

const ANN = 'ou_ann'
const BOB = 'ou_bob'

t.test('the answer to a group goes to the group, by the reference of the message that it answers', async (t) => {
  const s = await stand(t, { kind: 'feishu' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'from Bob', senderId: BOB, chatId: 'oc_p2p_bob' })
  await xagent.waitFor('message')
  await accepted(s, 1)
  const group = s.connector.push(legacyId, { text: '@_user_1 hello', senderId: ANN, group: 'oc_group' }).payload
  await waiting(s, 1)
  t.match(await run(xagent, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
  t.equal((await xagent.waitFor('message', ({ text }) => text !== 'from Bob')).text, 'hello', 'without the mention')
  t.match(await run(xagent, channelId, 'g', 'to all'), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [['oc_p2p_bob', 'to Bob'], ['oc_group', 'to all']])
  t.strictSame(s.connector.toolCalls.map(({ toolId, arguments: { reply_ref: ref } }) => [toolId, ref]), [['feishu_message_send', undefined], ['feishu_message_reply', group['reply_ref']]])
  await until(async () => (await s.metric('turns_total', { end: 'certain' })) === 2, 'both turns have certainly ended')
  await balanced(s)
})

t.test('a private answer reaches the private chat that wrote last, a group in between moves nothing', async (t) => {
  const s = await stand(t, { kind: 'feishu' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'from Ann', senderId: ANN, chatId: 'oc_p2p_ann' })
  await xagent.waitFor('message')
  s.connector.push(legacyId, { text: 'hello group', senderId: BOB, group: 'oc_group' })
  await waiting(s, 1)
  t.match(await run(xagent, channelId, 'a', 'to Ann'), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [['oc_p2p_ann', 'to Ann']])
})

t.test('Ann\'s answer is rejected once Bob has written: nobody gets it, and Bob gets his own', async (t) => {
  const s = await stand(t, { kind: 'feishu' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'from Ann', senderId: ANN, chatId: 'oc_p2p_ann' })
  await xagent.waitFor('message')
  await accepted(s, 1)
  s.connector.push(legacyId, { text: 'from Bob', senderId: BOB, chatId: 'oc_p2p_bob' })
  await waiting(s, 1)
  t.match(await run(xagent, channelId, 'a', 'to Ann'), { payload: { status: 'rejected', code: 'reply_target_moved', retryable: false } })
  t.equal(s.connector.toolCalls.length, 0)
  await xagent.waitFor('message', ({ text }) => text === 'from Bob')
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'to Ann' }), { payload: { status: 'rejected', code: 'reply_target_moved', retryable: false } }, 'a redelivery in Bob\'s turn, too')
  t.match(await run(xagent, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [['oc_p2p_bob', 'to Bob']])
  t.equal(await s.metric('dead_letters_total', { direction: 'outbound', reason: 'reply_target_moved' }), 1)
  await balanced(s)
})

t.test('after a time in which nobody listened it is unknown who wrote last: refused, until the person writes again', async (t) => {
  const s = await stand(t, { kind: 'feishu', store: 'lmdb' })
  const { xagent: before, channelId, legacyId } = await openChannel(s)
  for (const [senderId, text] of [[BOB, 'from Bob'], [ANN, 'from Ann']] as const) {
    s.connector.push(legacyId, { text, senderId })
    await before.waitFor('message', (message) => message.text === text)
    if (senderId === BOB) t.match(await run(before, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
  }
  await accepted(s, 2)
  await s.restartGateway()
  const xagent = s.xagent({ connectorId: before.connectorId })
  await xagent.connect()
  await xagent.openChannel(channelId)
  t.match(await xagent.sendFinal(channelId, { messageId: 'a1', text: 'to Ann?' }), { payload: { status: 'rejected', code: 'reply_target_moved', retryable: false } })
  s.connector.push(legacyId, { text: 'still there?', senderId: ANN })
  await xagent.waitFor('message', ({ text }) => text === 'still there?')
  t.match(await run(xagent, channelId, 'a2', 'to Ann'), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [['oc_p2p_ou_bob', 'to Bob'], ['oc_p2p_ou_ann', 'to Ann']])
  await balanced(s)
})

t.test('a command in a group is not forwarded; one in private passes byte for byte', async (t) => {
  const s = await stand(t, { kind: 'feishu' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  for (const text of ['@_user_1 /stop', '/stop', '@_user_1  @{approval:7} yes']) s.connector.push(legacyId, { text, senderId: BOB, group: 'oc_group' })
  const command = '/stop  “now”\t\u00a0é e\u0301 \u{1f6d1}\nline two'
  s.connector.push(legacyId, { text: command, senderId: ANN, chatId: 'oc_p2p_ann' })
  t.equal((await xagent.waitFor('message')).text, command)
  t.equal(await s.metric('messages_total', { direction: 'inbound', outcome: 'not_forwarded' }), 3)
  t.match(await run(xagent, channelId, 'a', 'stopped'), { payload: { status: 'accepted' } })
  s.connector.push(legacyId, { text: '@_user_1 well', senderId: BOB, group: 'oc_group' })
  await xagent.waitFor('message', ({ text }) => text === 'well')
  t.strictSame(heard(xagent), [command, 'well'])
  t.strictSame(reached(s.connector), [['oc_p2p_ann', 'stopped']])
  await balanced(s)
})

t.test('100 quick messages that the connector hands on out of order reach xAgent in order', async (t) => {
  const s = await stand(t, { kind: 'feishu' })
  const { xagent, legacyId } = await openChannel(s)
  const began = Date.now() - 1_000
  const written = Array.from({ length: 100 }, (_, i) => ({ text: `number ${i}`, senderId: ANN, createTimeMs: began + 5 * i }))
  // Each is at most a few places away from its own.
  const handedOn = written.map((message, i) => ({ message, place: i + ((i * 7) % 5) })).sort((a, b) => a.place - b.place).map(({ message }) => message)
  t.notSame(handedOn, written)
  for (const message of handedOn) s.connector.push(legacyId, message)
  await xagent.events.atLeast('message', 100, 30_000)
  t.strictSame(heard(xagent), written.map(({ text }) => text))
  await accepted(s, 100)
  await balanced(s)
})

t.test('Descriptor, Card and Skill show nothing of the connector\'s: no id of its own, no tool that needs a reference', async (t) => {
  const s = await stand(t, { kind: 'feishu' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  const { payload } = s.connector.push(legacyId, { text: 'hello', senderId: ANN, group: 'oc_group' })
  await xagent.waitFor('message')
  t.match(await run(xagent, channelId, 'a', 'x'), { payload: { status: 'accepted' } })
  t.match(await xagent.request('connection.descriptor.get', channelId, {}), {
    payload: {
      connection_descriptor: {
        schema: 'xagent.connection/v2',
        connection: { connector_card_id: 'im.feishu', connector_id: xagent.connectorId, connector_channel_id: channelId, profiles: ['xagent.im.v2'], status: 'connected' },
      },
    },
  })
  const card = await xagent.fetchJson('/connector-card.json')
  t.match(card, { protocol_version: '3.0', supports: { profiles: ['xagent.im.v2'] } })
  const tools = (card['tools'] as { tool_id: string }[]).map(({ tool_id: id }) => id)
  t.ok(tools.includes('feishu_message_send'))
  t.notOk(tools.some((tool) => tool.startsWith('feishu_message_reply')))
  const all = await seen(xagent)
  const secrets = [
    legacyId, String(s.connector.connectorId), String(payload['reply_ref']), String(payload['chat_id']), ANN,
    'reply_ref', 'feishu_message_reply', 'media_ref', 'media/uploads', 'im-connector-reply', 'Answer with the tool', 'xagent.im.v1', 'chat_id', 'sender_id',
  ]
  t.strictSame(secrets.filter((secret) => all.includes(secret)), [])
  t.strictSame(problems(xagent), [])
})
