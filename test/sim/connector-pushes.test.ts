import t from 'tap'
import { client, isPush, running, signedIn, words } from './connected.js'

void t.test('a frame is four to six times the person\'s words, which stand in it wrapped three times', async (t) => {
  for (const kind of ['telegram', 'wechat', 'feishu', 'generic'] as const) {
    const connector = await running(t, { kind })
    const { xagent, channelId } = await signedIn(t, connector)
    const text = 'x'.repeat(50_000)
    connector.push(channelId, { text })
    const packet = await xagent.waitFor('packet', isPush)
    const factor = JSON.stringify(packet).length / text.length
    t.ok(factor >= 4 && factor <= 6, `${kind}: ${factor}`)
    t.equal(packet.payload?.['raw_text'], text)
    t.equal(packet.payload?.['text'], packet.payload?.['activation_message'])
    t.not(packet.payload?.['text'], text)
  }
})

void t.test('a re-push has the same message_id and a new packet_id, with new references', async (t) => {
  const connector = await running(t, { kind: 'feishu' })
  const { xagent, channelId } = await signedIn(t, connector)
  for (let i = 0; i < 2; i += 1) connector.push(channelId, { text: 'hi', messageId: 'om_1', group: true, files: [{ type: 'image' }] })
  const [first, second] = (await xagent.events.atLeast('packet', 4)).filter(isPush)
  t.equal(first?.payload?.['message_id'], second?.payload?.['message_id'])
  t.not(first?.packet_id, second?.packet_id)
  t.not(first?.payload?.['reply_ref'], second?.payload?.['reply_ref'])
  t.notSame(first?.payload?.['media'], second?.payload?.['media'])
})

void t.test('Telegram and Feishu lose what is written while the channel is closed or the process is down', async (t) => {
  for (const kind of ['telegram', 'feishu'] as const) {
    const connector = await running(t, { kind })
    const { xagent, channelId } = await signedIn(t, connector)
    await xagent.request('channel.close', channelId, {})
    t.equal(connector.push(channelId, { text: 'while closed' }).outcome, 'lost')
    await connector.stop()
    t.equal(connector.push(channelId, { text: 'while down' }).outcome, 'lost')
    await connector.start()
    const again = await client(t, connector)
    await again.openChannel(channelId)
    connector.push(channelId, { text: 'heard' })
    await again.waitFor('packet', isPush)
    t.same(words(again), ['heard'])
    t.same(connector.lost.map(({ reason }) => reason), ['closed', 'down'])
  }
})

void t.test('WeChat queues for a closed channel, over a restart too, and flushes in order at the open', async (t) => {
  const connector = await running(t, { kind: 'wechat' })
  const { xagent, channelId } = await signedIn(t, connector)
  await xagent.request('channel.close', channelId, {})
  t.equal(connector.push(channelId, { text: 'one' }).outcome, 'queued')
  await connector.stop()
  connector.push(channelId, { text: 'two' })
  await connector.start()
  const again = await client(t, connector)
  await again.openChannel(channelId)
  await again.waitFor('packet', ({ payload }) => payload?.['raw_text'] === 'two')
  t.same(words(again), ['one', 'two'])
})

void t.test('WeChat: a message that comes during a flush deletes the rest of the backlog', async (t) => {
  const connector = await running(t, { kind: 'wechat' })
  const { xagent, channelId } = await signedIn(t, connector)
  await xagent.request('channel.close', channelId, {})
  for (const text of ['one', 'two', 'three']) connector.push(channelId, { text })
  await xagent.openChannel(channelId)
  connector.push(channelId, { text: 'new' })
  await xagent.waitFor('packet', ({ payload }) => payload?.['raw_text'] === 'new')
  t.same(words(xagent), ['one', 'new'])
  t.same(connector.lost.map(({ payload, reason }) => [payload['raw_text'], reason]), [['two', 'flush_ended'], ['three', 'flush_ended']])
})

void t.test('WeChat keeps at most 1000 messages for an hour, and drops the oldest', async (t) => {
  let now = 1_790_000_000_000
  const connector = await running(t, { kind: 'wechat', now: () => now })
  const { xagent, channelId } = await signedIn(t, connector)
  await xagent.request('channel.close', channelId, {})
  for (let i = 0; i <= 1000; i += 1) connector.push(channelId, { text: `n${i}` })
  t.same(connector.lost.map(({ payload, reason }) => [payload['raw_text'], reason]), [['n0', 'queue_full']])
  now += 3_600_001
  await xagent.openChannel(channelId)
  const lost = await connector.waitFor('lost', ({ reason }) => reason === 'too_old')
  t.equal(lost.payload['raw_text'], 'n1')
})

void t.test('what is written to a socket that dies unread is lost without anybody knowing', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  const gone = xagent.terminate()
  t.equal(connector.push(channelId, { text: 'unread' }).outcome, 'written')
  await gone
  await connector.waitFor('disconnect')
  t.same(connector.lost, [])
  const again = await client(t, connector)
  await again.openChannel(channelId)
  t.same(words(again), [])
})

void t.test('lists files in the dialect\'s words', async (t) => {
  for (const [dialect, list, key] of [['1.0', 'media', 'media_ref'], ['3.0', 'files', 'file_ref']] as const) {
    const connector = await running(t, { dialect })
    const { xagent, channelId } = await signedIn(t, connector)
    connector.push(channelId, { text: '', files: [{ type: 'image' }] })
    const { payload } = await xagent.waitFor('packet', isPush)
    const [item] = payload?.[list] as Record<string, unknown>[]
    t.type(item?.[key], 'string')
    t.match(item?.['download_url'], dialect === '1.0' ? /^\/media\/refs\// : /^\/files\/refs\//)
  }
})

void t.test('writes raw payloads and raw frames as they are', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  connector.pushRaw(channelId, { anything: [1] })
  t.same((await xagent.waitFor('packet', isPush)).payload, { anything: [1] })
  t.ok(connector.pushBytes('{"type":"odd"}'))
  t.same(await xagent.waitFor('packet', ({ type }) => type === 'odd'), { type: 'odd' })
})

void t.test('refuses to invent a message for a channel where nobody is signed in', async (t) => {
  const connector = await running(t)
  t.throws(() => connector.push('cch_nobody', { text: 'x' }), /nobody is signed in/)
})

void t.test('WeChat pushes the bot\'s own, unfinished and recalled messages like a user\'s', async (t) => {
  const connector = await running(t, { kind: 'wechat' })
  const { xagent, channelId } = await signedIn(t, connector)
  for (const state of ['own', 'unfinished', 'recalled'] as const) connector.push(channelId, { text: state, state })
  await xagent.events.waitFor('packet', (packet) => isPush(packet) && packet.payload?.['raw_text'] === 'recalled')
  t.match(xagent.events.all('packet').filter(isPush).map(({ payload }) => payload), [
    { message_type: 2, message_state: 2, raw_message: { message_type: 2 } },
    { message_type: 1, message_state: 1, raw_message: { message_state: 1 } },
    { message_type: 1, message_state: 2, raw_message: { delete_time_ms: Number } },
  ])
})
