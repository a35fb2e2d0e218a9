import t from 'tap'
import { openChannel, stand, until } from '../helper/stand.js'

/** A promise and the function that resolves it. */
function gate(): { readonly open: () => void; readonly passed: Promise<void> } {
  let open = (): void => {}
  const passed = new Promise<void>((resolve) => { open = resolve })
  return { open: () => open(), passed }
}

t.test('direct final delivery without any delta; each of several finals is delivered and acked by itself (v2 §1, §5)', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  for (const id of ['a', 'b', 'c']) t.match(await xagent.sendFinal(channelId, { messageId: id, text: `part ${id}` }), { payload: { message_id: id, status: 'accepted' } })
  t.strictSame(s.connector.sent.map(({ text }) => text), ['part a', 'part b', 'part c'])
  t.match(s.connector.toolCalls[0], { toolId: 'telegram_message_send', context: { tool_call_id: `${channelId}:a:1` } })
})

t.test('an ack points to its packet and names channel and message (v2 §7)', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  const ack = await xagent.sendFinal(channelId, { messageId: 'a', text: 'x', packetId: 'pkt_mine' })
  t.match(ack, { reply_to: 'pkt_mine', connector_channel_id: channelId, payload: { message_id: 'a' } })
})

t.test('a long final is sent in parts within the platform\'s limit, and is one ack', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  const text = Array.from({ length: 3 }, (_, i) => `paragraph ${i} ${'x'.repeat(3_000)}`).join('\n\n')
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text }), { payload: { status: 'accepted' } })
  t.equal(s.connector.sent.length, 3)
  t.ok(s.connector.sent.every((sent) => sent.text.length <= 4_096))
  t.equal(s.connector.sent.map((sent) => sent.text).join('\n\n'), text)
})

t.test('part 2 of 3 fails for now: the redelivery sends parts 2 and 3 only, also after a gateway restart', async (t) => {
  for (const restart of [false, true]) {
    const s = await stand(t, { store: 'lmdb' })
    const { xagent, channelId } = await openChannel(s)
    const text = ['1', '2', '3'].map((n) => n.repeat(4_000)).join('\n\n')
    s.connector.onTool(({ arguments: args }) => (String(args['text']).startsWith('2') ? { kind: 'error', error: { code: 'tool_invoke_failed', message: 'Telegram API HTTP 429' } } : undefined))
    t.match(await xagent.sendFinal(channelId, { messageId: 'a', text }), { payload: { status: 'rejected', code: 'target_temporarily_unavailable', retryable: true } })
    s.connector.onTool(() => undefined)
    if (restart) {
      await s.restartGateway()
      const again = s.xagent({ connectorId: xagent.connectorId })
      await again.connect()
      await again.openChannel(channelId)
      t.match(await again.sendFinal(channelId, { messageId: 'a', text }), { payload: { status: 'accepted' } })
    } else {
      t.match(await xagent.sendFinal(channelId, { messageId: 'a', text }), { payload: { status: 'accepted' } })
    }
    t.strictSame(s.connector.sent.map((sent) => sent.text[0]), ['1', '2', '3'])
    t.equal(await s.metric('ledger_imbalance', { direction: 'outbound' }), 0)
  }
})

t.test('each class of answer ends as it should', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  const cases: readonly (readonly [string, object, object])[] = [
    ['permanent', { kind: 'error', error: { code: 'tool_invoke_failed', message: 'Telegram API HTTP 403' } }, { status: 'rejected', code: 'target_delivery_failed', retryable: false }],
    ['temporary', { kind: 'error', error: { code: 'tool_invoke_failed', message: 'Telegram API HTTP 429' } }, { status: 'rejected', code: 'target_temporarily_unavailable', retryable: true }],
    ['5xx', { kind: 'error', error: { code: 'tool_invoke_failed', message: 'Telegram API HTTP 502' } }, { status: 'rejected', code: 'delivery_in_doubt', retryable: false }],
    ['unknown text', { kind: 'error', error: { code: 'tool_invoke_failed', message: 'something new' } }, { status: 'rejected', code: 'delivery_in_doubt', retryable: false }],
    ['error packet', { kind: 'error', shape: 'error', error: { code: 'tool_invoke_failed', message: 'Telegram API HTTP 400' } }, { status: 'rejected', code: 'target_delivery_failed', retryable: false }],
    ['no proof', { kind: 'result', result: { status: 'sent', message_id: 0 } }, { status: 'rejected', code: 'delivery_in_doubt', retryable: false }],
    ['not sent', { kind: 'result', result: { status: 'queued', message_id: 4 } }, { status: 'rejected', code: 'delivery_in_doubt', retryable: false }],
  ]
  for (const [name, answer, expected] of cases) {
    s.connector.onTool(() => answer as never)
    const ack = await xagent.sendFinal(channelId, { messageId: name, text: name })
    t.match(ack.payload, { message_id: name, ...expected }, name)
  }
  t.equal(await s.metric('messages_total', { direction: 'outbound', outcome: 'in_doubt' }), 4)
  t.equal(await s.metric('dead_letters_total', { direction: 'outbound', reason: 'delivery_in_doubt' }), 4)
})

t.test('a result that names another recipient than the person who wrote is in doubt', async (t) => {
  const s = await stand(t)
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'hello', fields: { chat_id: '4242' } })
  await xagent.waitFor('message')
  const ack = await xagent.sendFinal(channelId, { messageId: 'a', text: 'x' })
  t.match(ack, { payload: { status: 'rejected', code: 'delivery_in_doubt' } })
  t.ok(s.logs.some((line) => String(line['detail']).includes('other_recipient')))
})

t.test('an account that the platform refuses is shown as degraded until it works again', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  await xagent.request('connection.descriptor.get', channelId, {})
  s.connector.onTool(() => ({ kind: 'error', error: { code: 'tool_invoke_failed', message: 'Telegram API HTTP 401' } }))
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'x' }), { payload: { code: 'target_delivery_failed', retryable: false } })
  await xagent.waitFor('descriptor', ({ descriptor }) => (descriptor['connection'] as { status: string }).status === 'degraded')
  s.connector.onTool(() => undefined)
  t.match(await xagent.sendFinal(channelId, { messageId: 'b', text: 'x' }), { payload: { status: 'accepted' } })
  await until(() => (xagent.descriptors.get(channelId)?.['connection'] as { status: string }).status === 'connected', 'connected again')
})

t.test('a channel that the connector has forgotten is opened again and the call made once more', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  let refused = 0
  s.connector.onTool(() => (refused++ === 0 ? { kind: 'error', error: { code: 'connection_not_authenticated', message: 'channel is not bound' } } : undefined))
  const opens = s.connector.events.all('open').length
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'x' }), { payload: { status: 'accepted' } })
  t.equal(s.connector.events.all('open').length, opens + 1)
  t.equal(s.connector.sent.length, 1)
})

t.test('a timed-out call is in doubt; its late answer is not acked twice, and no further part is sent', async (t) => {
  const s = await stand(t, { config: 'delivery: { tool_timeout: 100ms }' })
  const { xagent, channelId } = await openChannel(s)
  const { open, passed } = gate()
  s.connector.onTool(() => ({ kind: 'sent', answerAfter: passed }))
  const ack = await xagent.sendFinal(channelId, { messageId: 'a', text: ['1', '2'].map((n) => n.repeat(4_000)).join('\n\n') })
  t.match(ack, { payload: { status: 'rejected', code: 'delivery_in_doubt', retryable: false } })
  const acks = () => xagent.events.all('packet').filter(({ type }) => type === 'chat.message.ack').length
  t.equal(acks(), 1)
  open()
  await until(() => s.logs.some((line) => String(line['msg']).includes('answered after its timeout')), 'the late answer')
  t.match(await xagent.request('ping', '', {}), { type: 'pong' })
  t.equal(acks(), 1)
  t.equal(s.connector.sent.length, 1)
})

t.test('a link lost during a call leaves it in doubt, and it is not sent again', async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  s.connector.onTool(() => ({ kind: 'drop_socket', when: 'after_effect' }))
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'x' }), { payload: { status: 'rejected', code: 'delivery_in_doubt', retryable: false } })
  s.connector.onTool(() => undefined)
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'x' }), { payload: { status: 'rejected', code: 'delivery_in_doubt' } })
  t.equal(s.connector.sent.length, 1)
})

t.test('a tool call of 12 s: pings, other channels and pushes go on, and its link is not declared dead', { timeout: 60_000 }, async (t) => {
  const s = await stand(t)
  const { xagent, channelId, legacyId } = await openChannel(s)
  const other = await xagent.openChannel()
  const otherLegacy = s.connector.channels().map(({ channelId: id }) => id).find((id) => id !== legacyId) ?? ''
  s.connector.signIn(otherLegacy)
  s.connector.onTool((call) => (call.channelId === legacyId ? { kind: 'sent', answerAfter: new Promise((resolve) => setTimeout(resolve, 12_000)) } : undefined))
  const slow = xagent.sendFinal(channelId, { messageId: 'slow', text: 'slow' })
  await s.connector.waitFor('tool', (call) => call.channelId === legacyId)
  t.match(await xagent.request('ping', '', {}), { type: 'pong' })
  t.match(await xagent.sendFinal(other.channelId, { messageId: 'quick', text: 'quick' }), { payload: { status: 'accepted' } })
  s.connector.push(legacyId, { text: 'still here?' })
  s.connector.push(otherLegacy, { text: 'and here?' })
  await xagent.events.atLeast('message', 2)
  t.match(await slow, { payload: { message_id: 'slow', status: 'accepted' } })
  t.equal(s.connector.events.all('disconnect').length, 0)
  t.equal(await s.metric('legacy_gaps_total'), 0)
  t.equal(xagent.events.all('packet').filter(({ type, payload }) => type === 'chat.message.ack' && payload?.['message_id'] === 'slow').length, 1)
})

t.test('a relayed tool call passes only projected arguments and listed result fields, and runs once per tool_call_id', async (t) => {
  const s = await stand(t)
  const { xagent, channelId, legacyId } = await openChannel(s)
  const call = { tool_id: 'telegram_message_send', arguments: { connector_channel_id: channelId, text: 'reminder', chat_id: '1', extra: true }, context: { session_id: 'sess', tool_call_id: 'tc1' } }
  const [first, second] = await Promise.all([xagent.request('tool.invoke', channelId, call), xagent.request('tool.invoke', channelId, call)])
  const third = await xagent.request('tool.invoke', channelId, call)
  for (const ack of [first, second, third]) t.match(ack, { type: 'tool.invoke.ack', payload: { tool_id: 'telegram_message_send', result: { status: 'sent', message_id: Number } } })
  t.notOk('chat_id' in ((first.payload?.['result'] ?? {}) as object))
  t.match(await xagent.request('tool.invoke', channelId, { ...call, arguments: { connector_channel_id: channelId, text: 'other words' } }), { error: { code: 'invalid_packet' } })
  t.equal(s.connector.toolCalls.length, 1)
  t.strictSame(s.connector.toolCalls[0]?.arguments, { text: 'reminder', connector_channel_id: legacyId })
  t.notMatch(JSON.stringify(s.connector.toolCalls[0]?.context), /sess/)
  t.match(await xagent.request('tool.invoke', channelId, { tool_id: 'no_such_tool', arguments: {} }), { error: { code: 'tool_not_available' } })
})
