/** WeChat: one account, to which many people and groups write (docs/legacy.md). */
import t from 'tap'
import { accepted, balanced, heard, problems, reached, run, seen, waiting } from '../helper/people.js'
import { openChannel, stand, until, type Stand } from '../helper/stand.js'

const ANN = 'u_ann@im.wechat'
const BOB = 'u_bob@im.wechat'

const notForwarded = (s: Stand) => s.metric('messages_total', { direction: 'inbound', outcome: 'not_forwarded' })
const typing = (s: Stand) => s.connector.toolCalls.filter(({ toolId }) => toolId === 'wechat_typing').map(({ arguments: args }) => [args['to'], args['context_token'], args['typing']])

t.test('text goes both ways; the answer names recipient and token of the message that it answers', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  const first = s.connector.push(legacyId, { text: 'hello', senderId: ANN }).payload
  const message = await xagent.waitFor('message')
  t.match(message, { text: 'hello', messageId: first['message_id'], channelId })
  t.strictSame(Object.keys(message.payload).sort(), ['created_at', 'message_id', 'text'])
  t.match(await run(xagent, channelId, 'a1', 'one'), { payload: { status: 'accepted' } })
  const second = s.connector.push(legacyId, { text: 'and again', senderId: ANN }).payload
  t.not(second['context_token'], first['context_token'])
  await xagent.waitFor('message', ({ text }) => text === 'and again')
  t.match(await run(xagent, channelId, 'a2', 'two'), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [[ANN, 'one'], [ANN, 'two']])
  const sends = s.connector.toolCalls.filter(({ toolId }) => toolId === 'wechat_message_send').map((call) => call.arguments)
  t.strictSame(sends, [first, second].map(({ context_token: token }, i) => ({ text: ['one', 'two'][i], recipient_ref: ANN, context_token: token, connector_channel_id: legacyId })))
  await balanced(s)
})

t.test('Bob\'s message reaches xAgent only when Ann\'s run has ended, and each gets the own answer', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'from Ann', senderId: ANN })
  await xagent.waitFor('message')
  await accepted(s, 1)
  s.connector.push(legacyId, { text: 'from Bob', senderId: BOB })
  await waiting(s, 1)
  xagent.sendActivity(channelId, 'thinking')
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'to Ann' }), { payload: { status: 'accepted' } })
  await xagent.ping()
  t.strictSame(heard(xagent), ['from Ann'], 'a final alone does not end a run')
  xagent.sendActivity(channelId, 'idle')
  await xagent.waitFor('message', ({ text }) => text === 'from Bob')
  t.match(await run(xagent, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [[ANN, 'to Ann'], [BOB, 'to Bob']])
  await until(async () => (await s.metric('turns_total', { end: 'certain' })) === 2, 'both turns have certainly ended')
  await waiting(s, 0)
  t.strictSame(await Promise.all(['likely', 'timeout', 'unaccepted'].map((end) => s.metric('turns_total', { end }))), [0, 0, 0])
  await balanced(s)
})

t.test('people who waited come in the order in which they wrote', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  const people = ['ann', 'bob', 'cleo', 'dan'].map((name) => `u_${name}@im.wechat`)
  s.connector.push(legacyId, { text: people[0] ?? '', senderId: people[0] ?? '' })
  await xagent.waitFor('message')
  for (const person of people.slice(1)) s.connector.push(legacyId, { text: person, senderId: person })
  await waiting(s, 3)
  for (const person of people) {
    await xagent.waitFor('message', ({ text }) => text === person)
    t.match(await run(xagent, channelId, `to ${person}`, `to ${person}`), { payload: { status: 'accepted' } })
  }
  t.strictSame(heard(xagent), people)
  t.strictSame(reached(s.connector), people.map((person) => [person, `to ${person}`]))
  await balanced(s)
})

t.test('members of a group are people of their own, and are answered in private', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  const inGroup = s.connector.push(legacyId, { text: 'Ann in the group', senderId: ANN, group: 'g_family@im.chatroom' }).payload
  await xagent.waitFor('message')
  s.connector.push(legacyId, { text: 'Bob in the group', senderId: BOB, group: 'g_family@im.chatroom' })
  s.connector.push(legacyId, { text: 'Ann in private', senderId: ANN })
  await waiting(s, 2)
  t.match(await run(xagent, channelId, 'a', 'one'), { payload: { status: 'accepted' } })
  await xagent.waitFor('message', ({ text }) => text === 'Bob in the group')
  t.match(await run(xagent, channelId, 'b', 'two'), { payload: { status: 'accepted' } })
  await xagent.waitFor('message', ({ text }) => text === 'Ann in private')
  t.match(await run(xagent, channelId, 'c', 'three'), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [[ANN, 'one'], [BOB, 'two'], [ANN, 'three']])
  const [first] = s.connector.toolCalls.filter(({ toolId }) => toolId === 'wechat_message_send')
  t.equal(first?.arguments['context_token'], inGroup['context_token'], 'the token of the group\'s message, not of the private one')
  await balanced(s)
})

t.test('the bot\'s own, unfinished and recalled messages and stickers are counted, never delivered, and block nothing', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  for (const state of ['own', 'unfinished', 'recalled'] as const) s.connector.push(legacyId, { text: state, state, senderId: BOB })
  s.connector.push(legacyId, { text: '', senderId: BOB })
  s.connector.push(legacyId, { text: 'from Ann', senderId: ANN })
  await xagent.waitFor('message')
  t.equal(await notForwarded(s), 3)
  t.equal(await s.metric('messages_total', { direction: 'inbound', outcome: 'empty' }), 1)
  t.equal(await s.metric('dead_letters_total', { direction: 'inbound', reason: 'empty_message' }), 1)
  // The same while somebody has the word.
  for (const state of ['own', 'unfinished', 'recalled'] as const) s.connector.push(legacyId, { text: state, state, senderId: ANN })
  s.connector.push(legacyId, { text: '', senderId: ANN })
  await until(async () => (await notForwarded(s)) === 6, 'they are counted')
  t.match(await run(xagent, channelId, 'a', 'to Ann'), { payload: { status: 'accepted' } })
  s.connector.push(legacyId, { text: 'from Bob', senderId: BOB })
  await xagent.waitFor('message', ({ text }) => text === 'from Bob')
  t.match(await run(xagent, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
  t.strictSame(heard(xagent), ['from Ann', 'from Bob'])
  t.strictSame(reached(s.connector), [[ANN, 'to Ann'], [BOB, 'to Bob']])
  t.equal(await s.metric('pending_messages', { direction: 'inbound' }), 0)
  await balanced(s)
})

t.test('"is typing" is shown to the person that is answered, from thinking to idle', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  const ann = s.connector.push(legacyId, { text: 'from Ann', senderId: ANN }).payload
  await xagent.waitFor('message')
  await accepted(s, 1)
  const bob = s.connector.push(legacyId, { text: 'from Bob', senderId: BOB }).payload
  await waiting(s, 1)
  xagent.sendActivity(channelId, 'thinking')
  await s.connector.waitFor('tool', ({ arguments: args }) => args['typing'] === true)
  xagent.sendActivity(channelId, 'tool', 'search')
  xagent.sendActivity(channelId, 'idle')
  await s.connector.waitFor('tool', ({ arguments: args }) => args['typing'] === false)
  t.strictSame(typing(s), [[ANN, ann['context_token'], true], [ANN, ann['context_token'], false]])
  t.match(await run(xagent, channelId, 'a', 'to Ann'), { payload: { status: 'accepted' } })
  await xagent.waitFor('message', ({ text }) => text === 'from Bob')
  xagent.sendActivity(channelId, 'thinking')
  await s.connector.waitFor('tool', ({ arguments: args }) => args['to'] === BOB && args['typing'] === true)
  xagent.sendActivity(channelId, 'idle')
  await s.connector.waitFor('tool', ({ arguments: args }) => args['to'] === BOB && args['typing'] === false)
  t.strictSame(typing(s).filter(([to]) => to === BOB), [[BOB, bob['context_token'], true], [BOB, bob['context_token'], false]])
  t.strictSame(reached(s.connector), [[ANN, 'to Ann']])
})

t.test('nothing of the connector\'s tokens, people, keys and instructions reaches xAgent', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  const keys = { aeskey: 'AESKEYinvented01', media: { aes_key: 'AESKEYinvented02', encrypt_query_param: 'PARAMinvented' } }
  const pushed = [
    s.connector.push(legacyId, { text: 'hello', senderId: ANN }).payload,
    s.connector.push(legacyId, { text: 'look', senderId: ANN, fields: { raw_message: { item_list: [{ type: 2, image_item: keys }] } } }).payload,
    s.connector.push(legacyId, { text: 'to all', senderId: BOB, senderName: 'Bob', group: 'g_family@im.chatroom' }).payload,
  ]
  await xagent.waitFor('message', ({ text }) => text === 'look')
  await xagent.request('connection.descriptor.get', channelId, {})
  await xagent.request('tool.invoke', channelId, { tool_id: 'wechat_message_send', arguments: { text: 'by the way' }, context: { tool_call_id: 'c1' } })
  const token = String(pushed[1]?.['context_token'])
  s.connector.onTool(({ toolId }) => (toolId === 'wechat_message_send' ? { kind: 'error', error: { code: 'tool_invoke_failed', message: `wechat send to ${ANN} with ${token} in ${legacyId}: WeChat API HTTP 403` } } : undefined))
  t.match(await xagent.request('tool.invoke', channelId, { tool_id: 'wechat_message_send', arguments: { text: 'by the way' } }), { error: { code: 'tool_invoke_failed' } })
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'x' }), { payload: { status: 'rejected', code: 'target_delivery_failed' } })
  s.connector.onTool(() => undefined)
  t.match(await run(xagent, channelId, 'a2', 'x'), { payload: { status: 'accepted' } })
  const all = await seen(xagent)
  const secrets = [
    ...pushed.flatMap((payload) => [payload['context_token'], payload['session_id'], payload['from']]).filter((value) => value !== undefined).map(String),
    'AESKEY', 'aes', 'PARAMinvented', 'g_family', 'u_owner1', 'bot10000aa', legacyId, String(s.connector.connectorId),
    'context_token', 'recipient_ref', 'session_id', 'raw_message', 'Answer with the tool', 'im-connector-reply', 'media/uploads', 'xagent.im.v1',
  ]
  t.strictSame(secrets.filter((secret) => all.includes(secret)), [])
  t.strictSame(problems(xagent), [])
})

t.test('a message without an id is delivered and answered; a re-push is known by sender, time and words', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  const createTimeMs = Date.now()
  const nameless = { text: 'no id', messageId: '', senderId: ANN, createTimeMs }
  s.connector.push(legacyId, nameless)
  t.match(await xagent.waitFor('message'), { text: 'no id', messageId: /^m_/ })
  s.connector.push(legacyId, nameless)
  await until(async () => (await s.metric('messages_total', { direction: 'inbound', outcome: 'absorbed' })) === 1, 'the re-push is absorbed')
  t.match(await run(xagent, channelId, 'a', 'to Ann'), { payload: { status: 'accepted' } })
  s.connector.push(legacyId, { ...nameless, text: 'other words' })
  await xagent.waitFor('message', ({ text }) => text === 'other words')
  for (let i = 0; i < 2; i += 1) s.connector.push(legacyId, { ...nameless, text: 'no time either', createTimeMs: 0 })
  await xagent.events.atLeast('message', 4)
  t.strictSame(heard(xagent), ['no id', 'other words', 'no time either', 'no time either'], 'without a time nothing tells a re-push')
  t.equal(new Set(xagent.received.map(({ messageId }) => messageId)).size, 4)
  t.equal(await s.metric('deviations_total', { reason: 'identity_missing' }), 2)
  t.strictSame(reached(s.connector), [[ANN, 'to Ann']])
  await balanced(s)
})

t.test('what WeChat queued while nobody listened arrives in order, each person in turn', async (t) => {
  const s = await stand(t, { kind: 'wechat', store: 'lmdb' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  await s.gateway.stop('a pause in a test')
  await until(() => s.connector.channels().every(({ open }) => !open), 'the channel is closed')
  for (const [senderId, text] of [[ANN, 'Ann 1'], [BOB, 'Bob 1'], [ANN, 'Ann 2']] as const) t.equal(s.connector.push(legacyId, { text, senderId }).outcome, 'queued')
  await s.restartGateway()
  const again = s.xagent({ connectorId: xagent.connectorId })
  await again.connect()
  await again.openChannel(channelId)
  await again.waitFor('message')
  await until(async () => (await s.metric('packets_total', { side: 'legacy', type: 'message.push' })) === 3, 'the queue has been flushed')
  await again.events.atLeast('message', 2)
  t.strictSame(heard(again), ['Ann 1', 'Ann 2'])
  t.match(await run(again, channelId, 'a1', 'to Ann'), { payload: { status: 'accepted' } })
  t.match(await run(again, channelId, 'a2', 'to Ann, too'), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [[ANN, 'to Ann'], [ANN, 'to Ann, too']])
  await balanced(s)
})

t.test('an account that is signed in on a second channel is noticed on the first, and nobody is answered from there', async (t) => {
  const s = await stand(t, { kind: 'wechat', connectorConfig: '    descriptor_check: 1s' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.signIn(legacyId, { account: 'the shop' })
  await xagent.request('connection.descriptor.get', channelId, {})
  s.connector.push(legacyId, { text: 'from Ann', senderId: ANN })
  await xagent.waitFor('message')
  const second = await openChannel(s)
  s.connector.signIn(second.legacyId, { account: 'the shop' })
  await xagent.waitFor('descriptor', ({ channelId: id, descriptor }) => id === channelId && (descriptor['connection'] as { status: string }).status === 'created')
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'too late' }), { payload: { status: 'rejected', retryable: false } })
  s.connector.push(second.legacyId, { text: 'Ann again', senderId: ANN })
  await second.xagent.waitFor('message', ({ text }) => text === 'Ann again')
  t.match(await run(second.xagent, second.channelId, 'b', 'to Ann'), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [[ANN, 'to Ann']])
})
