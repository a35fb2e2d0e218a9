/** Several people on a connector without a preset, and what an agent sends by itself (DESIGN §3 Skill, §4 rule 7). */
import t from 'tap'
import { accepted, balanced, heard, problems, reached, run, seen, waiting } from '../helper/people.js'
import { openChannel, stand, until, type Stand } from '../helper/stand.js'
import type { WirePacket } from '../../src/sim/wire-packet.js'
import type { SimXagent } from '../../src/sim/xagent.js'

const ANN = 'u_ann@im.wechat'
const BOB = 'u_bob@im.wechat'

/** An agent calls a tool with a text. */
function send(xagent: SimXagent, channelId: string, toolId: string, text: string, toolCallId?: string): Promise<WirePacket> {
  return xagent.request('tool.invoke', channelId, { tool_id: toolId, arguments: { text }, ...(toolCallId !== undefined && { context: { tool_call_id: toolCallId } }) })
}

const certainly = (s: Stand, turns: number) => until(async () => (await s.metric('turns_total', { end: 'certain' })) === turns, `${turns} turns have certainly ended`)

for (const dialect of ['3.0', '1.0'] as const) {
  t.test(`without a preset, in the ${dialect} dialect: each person of a channel gets the own answer, by the push's reply_ref`, async (t) => {
    const s = await stand(t, { kind: 'generic', dialect })
    const { xagent, channelId, legacyId } = await openChannel(s)
    const ann = s.connector.push(legacyId, { text: 'from Ann', senderId: 'ann' }).payload
    await xagent.waitFor('message')
    await accepted(s, 1)
    const bob = s.connector.push(legacyId, { text: 'from Bob', senderId: 'bob' }).payload
    await waiting(s, 1)
    t.match(await run(xagent, channelId, 'a', 'to Ann'), { payload: { status: 'accepted' } })
    await xagent.waitFor('message', ({ text }) => text === 'from Bob')
    t.match(await run(xagent, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
    t.strictSame(reached(s.connector), [['chat-ann', 'to Ann'], ['chat-bob', 'to Bob']])
    t.strictSame(s.connector.sent.map(({ arguments: args }) => args['reply_ref']), [ann, bob].map(({ reply }) => (reply as { reply_ref: string }).reply_ref))
    t.strictSame(heard(xagent), ['from Ann', 'from Bob'])
    const all = await seen(xagent)
    t.strictSame([legacyId, 'chat-ann', 'chat-bob', String((ann['reply'] as { reply_ref: string }).reply_ref)].filter((secret) => all.includes(secret)), [])
    t.strictSame(problems(xagent), [])
    await certainly(s, 2)
    await balanced(s)
  })
}

t.test('without a preset, what an agent sends in somebody\'s turn goes to that person, and to nobody when nothing says to whom', async (t) => {
  const s = await stand(t, { kind: 'generic' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'from Ann', senderId: 'ann' })
  await xagent.waitFor('message')
  await accepted(s, 1)
  s.connector.push(legacyId, { text: 'from Bob', senderId: 'bob' })
  await waiting(s, 1)
  t.match(await send(xagent, channelId, 'example_message_send', 'wait a moment'), { payload: { tool_id: 'example_message_send', result: { status: 'sent' } } })
  t.match(await run(xagent, channelId, 'a', 'to Ann'), { payload: { status: 'accepted' } })
  await xagent.waitFor('message', ({ text }) => text === 'from Bob')
  t.match(await run(xagent, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
  await certainly(s, 2)
  t.match(await send(xagent, channelId, 'example_message_send', 'to whom?'), { error: { code: 'no_reply_target' } })
  t.strictSame(reached(s.connector), [['chat-ann', 'wait a moment'], ['chat-ann', 'to Ann'], ['chat-bob', 'to Bob']])
})

t.test('what an agent sends in somebody\'s turn goes to that person, and says no more than that it was sent', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'from Ann', senderId: ANN })
  await xagent.waitFor('message')
  await accepted(s, 1)
  const bob = s.connector.push(legacyId, { text: 'from Bob', senderId: BOB }).payload
  await waiting(s, 1)
  t.match(await send(xagent, channelId, 'wechat_message_send', 'wait a moment'), { payload: { result: { status: 'sent' } } })
  t.match(await run(xagent, channelId, 'a', 'to Ann'), { payload: { status: 'accepted' } })
  await xagent.waitFor('message', ({ text }) => text === 'from Bob')
  const answer = await xagent.request('tool.invoke', channelId, {
    tool_id: 'wechat_message_send', context: { tool_call_id: 'c1' },
    // An agent cannot choose the person.
    arguments: { text: 'wait, Bob', connector_channel_id: channelId, recipient_ref: ANN, to: ANN, context_token: 'forged' },
  })
  t.match(answer, { type: 'tool.invoke.ack', connector_channel_id: channelId, payload: { tool_id: 'wechat_message_send', result: { status: 'sent', message_id: String, sent_at: Number } } })
  t.strictSame(Object.keys(answer.payload?.['result'] as object).sort(), ['message_id', 'sent_at', 'status'])
  t.strictSame(s.connector.toolCalls.at(-1)?.arguments, { text: 'wait, Bob', recipient_ref: BOB, context_token: bob['context_token'], connector_channel_id: legacyId })
  t.match(await run(xagent, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [[ANN, 'wait a moment'], [ANN, 'to Ann'], [BOB, 'wait, Bob'], [BOB, 'to Bob']])
  t.strictSame(problems(xagent), [])
  await balanced(s)
})

t.test('what an agent sends in a Feishu group\'s turn goes to the group, by reference', async (t) => {
  const s = await stand(t, { kind: 'feishu' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'from Bob', senderId: 'ou_bob', chatId: 'oc_p2p_bob' })
  await xagent.waitFor('message')
  t.match(await run(xagent, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
  const group = s.connector.push(legacyId, { text: 'hello', senderId: 'ou_ann', group: 'oc_group' }).payload
  await xagent.waitFor('message', ({ text }) => text === 'hello')
  const answer = await send(xagent, channelId, 'feishu_message_send', 'wait, all of you', 'c1')
  t.match(answer, { payload: { tool_id: 'feishu_message_send', result: { message_id: String, message_type: 'text' } } })
  t.strictSame(Object.keys(answer.payload?.['result'] as object).sort(), ['message_id', 'message_type'])
  t.match(s.connector.toolCalls.at(-1), { toolId: 'feishu_message_reply', arguments: { text: 'wait, all of you', reply_ref: group['reply_ref'] } })
  t.match(await xagent.request('tool.invoke', channelId, { tool_id: 'feishu_message_reply', arguments: { text: 'x', reply_ref: group['reply_ref'] } }), { error: { code: 'tool_not_available' } })
  t.match(await run(xagent, channelId, 'g', 'to all'), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [['oc_p2p_bob', 'to Bob'], ['oc_group', 'wait, all of you'], ['oc_group', 'to all']])
})

t.test('what an agent sends to a private chat that is no longer the last to write is refused', async (t) => {
  const s = await stand(t, { kind: 'feishu' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'from Ann', senderId: 'ou_ann' })
  await xagent.waitFor('message')
  s.connector.push(legacyId, { text: 'from Bob', senderId: 'ou_bob' })
  await waiting(s, 1)
  t.match(await send(xagent, channelId, 'feishu_message_send', 'for Ann'), { type: 'tool.invoke.ack', error: { code: 'reply_target_moved' } })
  t.equal(s.connector.toolCalls.length, 0)
})

t.test('in nobody\'s turn an agent reaches the only person there is, and nobody once there are two', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  t.match(await send(xagent, channelId, 'wechat_message_send', 'is anybody there?'), { type: 'tool.invoke.ack', error: { code: 'no_reply_target' } })
  s.connector.push(legacyId, { text: 'from Ann', senderId: ANN })
  await xagent.waitFor('message')
  t.match(await run(xagent, channelId, 'a', 'to Ann'), { payload: { status: 'accepted' } })
  await certainly(s, 1)
  t.match(await send(xagent, channelId, 'wechat_message_send', 'good morning, Ann'), { payload: { result: { status: 'sent' } } })
  s.connector.push(legacyId, { text: 'from Bob', senderId: BOB })
  await xagent.waitFor('message', ({ text }) => text === 'from Bob')
  t.match(await run(xagent, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
  await certainly(s, 2)
  t.match(await send(xagent, channelId, 'wechat_message_send', 'good morning'), { type: 'tool.invoke.ack', error: { code: 'no_reply_target' } })
  t.strictSame(reached(s.connector), [[ANN, 'to Ann'], [ANN, 'good morning, Ann'], [BOB, 'to Bob']])
  t.equal(await s.metric('dead_letters'), 0, 'a tool call is no message')
})

t.test('a repeated tool_call_id runs once: while it runs, afterwards, and after a restart', async (t) => {
  const s = await stand(t, { kind: 'wechat', store: 'lmdb' })
  const { xagent: before, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'from Ann', senderId: ANN })
  await before.waitFor('message')
  await accepted(s, 1)
  let open = (): void => {}
  const passed = new Promise<void>((resolve) => { open = resolve })
  s.connector.onTool(() => ({ kind: 'sent', answerAfter: passed }))
  const first = send(before, channelId, 'wechat_message_send', 'once', 'c1')
  await s.connector.waitFor('sent')
  const meanwhile = send(before, channelId, 'wechat_message_send', 'once', 'c1')
  await before.ping()
  open()
  const answer = (await first).payload
  t.match(answer, { result: { status: 'sent', message_id: String } })
  t.strictSame((await meanwhile).payload, answer)
  t.strictSame((await send(before, channelId, 'wechat_message_send', 'once', 'c1')).payload, answer)
  await s.restartGateway()
  const xagent = s.xagent({ connectorId: before.connectorId })
  await xagent.connect()
  await xagent.openChannel(channelId)
  t.strictSame((await send(xagent, channelId, 'wechat_message_send', 'once', 'c1')).payload, answer)
  t.match(await send(xagent, channelId, 'wechat_message_send', 'another', 'c2'), { payload: { result: { status: 'sent' } } })
  t.strictSame(reached(s.connector), [[ANN, 'once'], [ANN, 'another']])
  t.equal(s.connector.toolCalls.length, 2)
  await balanced(s)
})

t.test('a relayed call that failed for certain may be repeated; one of unknown outcome is not made again', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'from Ann', senderId: ANN })
  await xagent.waitFor('message')
  s.connector.onTool(() => ({ kind: 'error', error: { code: 'tool_invoke_failed', message: 'wechat send: WeChat API HTTP 429' } }))
  t.match(await send(xagent, channelId, 'wechat_message_send', 'one', 'c1'), { error: { code: 'connector_unavailable' } })
  s.connector.onTool(() => ({ kind: 'drop_socket', when: 'after_effect' }))
  t.match(await send(xagent, channelId, 'wechat_message_send', 'two', 'c2'), { error: { code: 'delivery_in_doubt' } })
  s.connector.onTool(() => undefined)
  t.match(await send(xagent, channelId, 'wechat_message_send', 'one', 'c1'), { payload: { result: { status: 'sent' } } })
  t.match(await send(xagent, channelId, 'wechat_message_send', 'two', 'c2'), { error: { code: 'delivery_in_doubt' } })
  t.strictSame(reached(s.connector), [[ANN, 'two'], [ANN, 'one']])
})
