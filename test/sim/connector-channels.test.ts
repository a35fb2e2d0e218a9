import t from 'tap'
import { client, invoke, isPush, running, signedIn, words } from './connected.js'

void t.test('answers an open of an unknown id with a new one, and of a known one with the same', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  t.not((await xagent.openChannel('cch_never_seen')).channelId, 'cch_never_seen')
  t.equal((await xagent.openChannel(channelId)).channelId, channelId)
})

void t.test('a channel that is not signed in dies with its socket; one that is stays', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  const unsigned = await xagent.openChannel()
  await xagent.terminate()
  await connector.waitFor('disconnect')
  const again = await client(t, connector)
  t.not((await again.openChannel(unsigned.channelId)).channelId, unsigned.channelId)
  t.equal((await again.openChannel(channelId)).channelId, channelId)
})

void t.test('the latest opener has the channel, and the earlier one is not told', async (t) => {
  const connector = await running(t)
  const { xagent: first, channelId } = await signedIn(t, connector)
  const second = await client(t, connector)
  await second.openChannel(channelId)
  const before = first.events.all('packet').length
  connector.push(channelId, { text: 'for the second' })
  await second.waitFor('packet', isPush)
  await first.ping()
  t.equal(first.events.all('packet').length, before)
})

void t.test('the route is gone with the latest opener, though an earlier one is still there', async (t) => {
  const connector = await running(t)
  const { xagent: first, channelId } = await signedIn(t, connector)
  const second = await client(t, connector)
  await second.openChannel(channelId)
  await second.terminate()
  await connector.waitFor('disconnect')
  await first.ping()
  t.equal(connector.push(channelId, { text: 'for nobody' }).outcome, 'lost')
})

void t.test('a closed channel pushes nothing, and logging out of it finds no connection', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  t.same((await xagent.request('channel.close', channelId, {})).payload, { status: 'ok' })
  t.equal(connector.push(channelId, { text: 'too late' }).outcome, 'lost')
  const answer = await xagent.request('auth.logout', channelId, {})
  t.equal(answer.type, 'error')
  t.equal(answer.error?.code, 'connection_not_found')
  t.same(words(xagent), [])
})

void t.test('a push can come before its channel.open.ack', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  await xagent.request('channel.close', channelId, {})
  connector.onOpen((opened) => void connector.push(opened, { text: 'early' }))
  await xagent.openChannel(channelId)
  t.same(xagent.events.all('packet').slice(-2).map(({ type }) => type), ['message.push', 'channel.open.ack'])
})

void t.test('1.0: any socket after hello may invoke, close and log out on any open channel', async (t) => {
  const connector = await running(t)
  const { channelId } = await signedIn(t, connector)
  const other = await client(t, connector)
  t.match((await invoke(other, channelId, 'from elsewhere')).payload, { result: { status: 'sent' } })
  t.equal((await other.request('auth.logout', channelId, {})).payload?.['status'], 'ok')
  t.equal((await other.request('channel.close', channelId, {})).payload?.['status'], 'ok')
})

void t.test('3.0: a channel that another socket opened is connector_channel_not_owned', async (t) => {
  const connector = await running(t, { dialect: '3.0' })
  const { xagent, channelId } = await signedIn(t, connector)
  const other = await client(t, connector)
  for (const answer of [await invoke(other, channelId, 'x'), await other.request('channel.close', channelId, {})]) {
    t.equal(answer.type, 'error')
    t.equal(answer.error?.code, 'connector_channel_not_owned')
  }
  t.match((await invoke(xagent, channelId, 'x')).payload, { result: { status: 'sent' } })
})

void t.test('3.0: the Descriptor is v2 with a list of profiles', async (t) => {
  const connector = await running(t, { dialect: '3.0' })
  const { descriptor } = await (await client(t, connector)).openChannel()
  t.match(descriptor, { schema: 'xagent.connection/v2', connection: { profiles: ['xagent.im.v1'], status: 'created' } })
  t.notOk('profile' in (descriptor['connection'] as object))
})

void t.test('a lost token ends WeChat\'s binding and is told only where the channel is open; Telegram goes on as connected', async (t) => {
  const wechat = await running(t, { kind: 'wechat' })
  const { xagent, channelId } = await signedIn(t, wechat)
  wechat.loseToken(channelId)
  const { descriptor } = await xagent.waitFor('descriptor')
  t.match(descriptor, { connection: { status: 'created' } })
  t.notOk('tools' in descriptor)
  wechat.signIn(channelId)
  await xagent.request('channel.close', channelId, {})
  wechat.loseToken(channelId)
  t.not((await xagent.openChannel(channelId)).channelId, channelId)

  const telegram = await running(t)
  const bound = await signedIn(t, telegram)
  telegram.loseToken(bound.channelId)
  t.match((await bound.xagent.openChannel(bound.channelId)).descriptor, { connection: { status: 'connected' } })
})
