import t from 'tap'
import { client, gate, invoke, isPush, running, signedIn } from './connected.js'

void t.test('trims the text, counts other types as missing, and reports what was sent to whom', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  const answer = await invoke(xagent, channelId, '  the answer \n')
  t.match(answer.payload, { tool_id: 'telegram_message_send', result: { chat_id: '880000042', status: 'sent' } })
  t.match(connector.sent, [{ channelId, text: 'the answer', to: '880000042' }])
  for (const text of [undefined, 7, '   ', null]) {
    t.same((await invoke(xagent, channelId, text)).error, { code: 'tool_invoke_failed', message: 'message text required' })
  }
  t.equal(connector.sent.length, 1)
  t.equal(connector.toolCalls.length, 5)
})

void t.test('Telegram counts message ids up, over pushes and sendings alike', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  const { payload } = connector.push(channelId, { text: 'hi' })
  const sent = await invoke(xagent, channelId, 'one')
  t.match(sent.payload, { result: { message_id: Number(payload['message_id']) + 1 } })
})

void t.test('WeChat sends to the owner unless the call names a recipient', async (t) => {
  const connector = await running(t, { kind: 'wechat' })
  const { xagent, channelId } = await signedIn(t, connector)
  await invoke(xagent, channelId, 'x', 'wechat_message_send')
  const args = { text: 'y', recipient_ref: 'u_alice@im.wechat', context_token: 'ctx' }
  await xagent.request('tool.invoke', channelId, { tool_id: 'wechat_message_send', arguments: args })
  t.same(connector.sent.map(({ to }) => to), ['u_owner1@im.wechat', 'u_alice@im.wechat'])
})

void t.test('Feishu sends to the private chat that wrote last, replies to the chat of the reference, and to nobody before', async (t) => {
  const connector = await running(t, { kind: 'feishu' })
  const { xagent, channelId } = await signedIn(t, connector)
  t.match((await invoke(xagent, channelId, 'x', 'feishu_message_send')).error, { message: /not bound/ })
  connector.push(channelId, { text: 'hi', senderId: 'ou_ann' })
  connector.push(channelId, { text: 'hi', senderId: 'ou_bob' })
  const group = connector.push(channelId, { text: 'hi', senderId: 'ou_ann', group: true })
  await invoke(xagent, channelId, 'for Ann', 'feishu_message_send')
  const args = { reply_ref: group.payload['reply_ref'], text: 'for all' }
  for (let i = 0; i < 2; i += 1) await xagent.request('tool.invoke', channelId, { tool_id: 'feishu_message_reply', arguments: args })
  t.same(connector.sent.map(({ to }) => to), ['oc_p2p_ou_bob', 'oc_group_ops', 'oc_group_ops'])
})

void t.test('a running call delays everything behind it on its socket, WebSocket pongs too, while pushes go on', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  const platform = gate()
  connector.onTool(async () => {
    await platform.opened
    return undefined
  })
  const call = invoke(xagent, channelId, 'slow')
  await connector.waitFor('tool')
  const order: string[] = []
  xagent.events.on('packet', ({ type }) => order.push(type))
  const ping = xagent.request('ping', channelId, {})
  const open = xagent.openChannel(channelId)
  const pong = xagent.ping().then(() => order.push('websocket pong'))
  connector.push(channelId, { text: 'meanwhile' })
  await xagent.waitFor('packet', isPush)
  platform.open()
  await Promise.all([call, ping, open, pong])
  t.same(order, ['message.push', 'tool.invoke.ack', 'pong', 'channel.open.ack', 'websocket pong'])
})

void t.test('a running call delays nothing on another socket', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  const tools = await client(t, connector)
  const platform = gate()
  connector.onTool(async ({ arguments: { text } }) => {
    if (text === 'slow') await platform.opened
    return undefined
  })
  const slow = invoke(tools, channelId, 'slow')
  await connector.waitFor('tool')
  await xagent.ping()
  t.match((await invoke(xagent, channelId, 'quick')).payload, { result: { status: 'sent' } })
  platform.open()
  await slow
  t.same(connector.sent.map(({ text }) => text), ['quick', 'slow'])
})

void t.test('calls that were queued on a socket are still executed after it was dropped', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  const platform = gate()
  connector.onTool(async () => {
    await platform.opened
    return undefined
  })
  const answers = Promise.allSettled([invoke(xagent, channelId, 'running'), invoke(xagent, channelId, 'queued')])
  await connector.waitFor('tool')
  await xagent.close()
  await connector.waitFor('disconnect')
  t.same((await answers).map(({ status }) => status), ['rejected', 'rejected'])
  platform.open()
  await connector.waitFor('sent', ({ text }) => text === 'queued')
  t.same(connector.sent.map(({ text }) => text), ['running', 'queued'])
})

void t.test('a call whose process ends is not executed, nor what was queued behind it', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  const platform = gate()
  connector.onTool(async () => {
    await platform.opened
    return undefined
  })
  const answers = Promise.allSettled([invoke(xagent, channelId, 'running'), invoke(xagent, channelId, 'queued')])
  await connector.waitFor('tool')
  await connector.stop()
  platform.open()
  await answers
  t.same(connector.sent, [])
})

void t.test('scripts: another result, both error shapes, no answer, a socket dropped before and after the effect', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  connector.onTool(() => ({ kind: 'result', result: { status: 'sent', message_id: 0 } }))
  t.same((await invoke(xagent, channelId, 'result')).payload?.['result'], { status: 'sent', message_id: 0 })

  const error = { code: 'tool_invoke_failed', message: 'Telegram API HTTP 429' }
  connector.onTool(() => ({ kind: 'error', error }))
  const asAck = await invoke(xagent, channelId, 'ack error')
  t.same([asAck.type, asAck.error], ['tool.invoke.ack', error])
  connector.onTool(() => ({ kind: 'error', error, shape: 'error', effect: true }))
  const asError = await invoke(xagent, channelId, 'error packet')
  t.same([asError.type, asError.error, asError.reply_to], ['error', error, undefined])

  connector.onTool(() => ({ kind: 'no_answer' }))
  const unanswered = invoke(xagent, channelId, 'no answer')
  await connector.waitFor('sent', ({ text }) => text === 'no answer')
  for (const when of ['before_effect', 'after_effect'] as const) {
    connector.onTool(() => ({ kind: 'drop_socket', when }))
    await t.rejects(invoke(xagent, channelId, when), /1006/)
    await xagent.reconnect()
  }
  await t.rejects(unanswered, /1006/)
  t.same(connector.sent.map(({ text }) => text), ['result', 'error packet', 'no answer', 'after_effect'])
})

void t.test('an answer can be held back after the effect', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  const platform = gate()
  connector.onTool(() => ({ kind: 'sent', answerAfter: platform.opened }))
  const call = invoke(xagent, channelId, 'late answer')
  t.match(await connector.waitFor('sent'), { text: 'late answer' })
  platform.open()
  t.match((await call).payload, { result: { status: 'sent' } })
})

void t.test('an unopened channel is refused as an ack by Telegram and as an error packet by WeChat', async (t) => {
  for (const [kind, toolId, type, code] of [
    ['telegram', 'telegram_message_send', 'tool.invoke.ack', 'connection_not_authenticated'],
    ['wechat', 'wechat_message_send', 'error', 'connection_not_found'],
  ] as const) {
    const connector = await running(t, { kind })
    const { xagent, channelId } = await signedIn(t, connector)
    await xagent.request('channel.close', channelId, {})
    const answer = await invoke(xagent, channelId, 'x', toolId)
    t.same([answer.type, answer.error?.code], [type, code])
  }
})
