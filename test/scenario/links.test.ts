import t from 'tap'
import { openChannel, stand, until } from '../helper/stand.js'
import { startSimConnector } from '../../src/sim/connector.js'

const statusOf = (descriptor: object | undefined) => (descriptor as { connection: { status: string } }).connection.status

t.test('a push before its channel.open.ack is delivered, on a first open and on a re-open', async (t) => {
  const s = await stand(t)
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.onOpen((id) => { if (id === legacyId) s.connector.push(legacyId, { text: 'early on the re-open' }) })
  s.connector.dropSockets()
  t.equal((await xagent.waitFor('message')).channelId, channelId)
  s.connector.onOpen((id) => {
    if (id === legacyId) return
    s.connector.signIn(id)
    s.connector.push(id, { text: 'early on the first open' })
  })
  const second = await xagent.openChannel()
  const early = await xagent.waitFor('message', ({ text }) => text === 'early on the first open')
  t.equal(early.channelId, second.channelId)
})

t.test('a push on an id that nobody opened is a dead letter unknown_channel, words kept', async (t) => {
  const s = await stand(t)
  const { xagent, legacyId } = await openChannel(s)
  s.connector.pushBytes(JSON.stringify({
    schema: 'xagent.connector.packet/v1', packet_id: 'p', connector_channel_id: 'cch_nobody', type: 'message.push',
    payload: { profile: 'xagent.im.v1', event_kind: 'im.message.received', message_id: '1', raw_text: 'lost?', sender_id: '1' },
  }))
  s.connector.push(legacyId, { text: 'the end' })
  await xagent.waitFor('message')
  await until(async () => (await s.metric('dead_letters_total', { reason: 'unknown_channel' })) === 1, 'the dead letter')
  t.equal(await s.metric('messages_total', { direction: 'inbound', outcome: 'unknown_channel' }), 1)
  t.equal(await s.metric('ledger_imbalance', { direction: 'inbound' }), 0)
})

t.test('the connector restarts with new ids: xAgent\'s link and ids do not change', async (t) => {
  const s = await stand(t)
  const { xagent, channelId, legacyId } = await openChannel(s)
  await s.connector.restart({ newIds: true })
  await until(() => s.connector.channels().some(({ open }) => open), 'a channel is open again')
  const [moved] = s.connector.channels()
  t.not(moved?.channelId, legacyId)
  t.ok(xagent.connected)
  s.connector.signIn(moved?.channelId ?? '')
  s.connector.push(moved?.channelId ?? '', { text: 'from the new life' })
  const message = await xagent.waitFor('message')
  t.equal(message.channelId, channelId)
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'x' }), { payload: { status: 'accepted' } })
  t.equal(s.connector.toolCalls.at(-1)?.channelId, moved?.channelId)
  t.equal(xagent.events.all('closed').length, 0)
})

t.test('an xAgent that moves from the connector to the gateway needs no new sign-in', async (t) => {
  const s = await stand(t, { store: 'lmdb' })
  s.connector.signIn('cch_from_before')
  const xagent = s.xagent({ connectorId: 'conn_from_before' })
  await xagent.connect()
  t.equal(xagent.connectorId, 'conn_from_before')
  const opened = await xagent.openChannel('cch_from_before')
  t.equal(opened.channelId, 'cch_from_before')
  t.equal(statusOf(opened.descriptor), 'connected')
  s.connector.push('cch_from_before', { text: 'hello' })
  t.equal((await xagent.waitFor('message')).channelId, 'cch_from_before')
  await s.restartGateway()
  const later = s.xagent({ connectorId: 'conn_from_before' })
  await later.connect()
  t.equal((await later.openChannel('cch_from_before')).channelId, 'cch_from_before')
})

t.test('an id that the connector does not know is replaced by one of the gateway\'s own', async (t) => {
  const s = await stand(t)
  const xagent = s.xagent()
  await xagent.connect()
  const opened = await xagent.openChannel('cch_stale')
  t.not(opened.channelId, 'cch_stale')
  t.notOk(s.connector.channels().some(({ channelId }) => channelId === opened.channelId), 'nor is it the connector\'s')
})

t.test('two northbound ids of one channel: each link sees the id it uses', async (t) => {
  const s = await stand(t)
  const { channelId, legacyId } = await openChannel(s)
  const mover = s.xagent()
  await mover.connect()
  const opened = await mover.openChannel(legacyId)
  t.equal(opened.channelId, legacyId)
  t.equal((opened.descriptor['connection'] as { connector_channel_id: string }).connector_channel_id, legacyId)
  s.connector.push(legacyId, { text: 'hello' })
  t.equal((await mover.waitFor('message')).channelId, legacyId)
  t.match(await mover.sendFinal(legacyId, { messageId: 'a', text: 'x' }), { connector_channel_id: legacyId, payload: { status: 'accepted' } })
  t.not(channelId, legacyId)
})

t.test('while the connector is away xAgent stays connected: Descriptors go offline and come back, tools say so', { timeout: 30_000 }, async (t) => {
  const s = await stand(t)
  const { xagent, channelId } = await openChannel(s)
  await xagent.request('connection.descriptor.get', channelId, {})
  await s.connector.stop()
  await xagent.waitFor('descriptor', ({ descriptor }) => statusOf(descriptor) === 'offline')
  t.match(xagent.descriptors.get(channelId), { tools: [{ tool_id: 'telegram_message_send', status: 'unavailable', reason: 'connector_unavailable' }] })
  t.match(await xagent.request('tool.invoke', channelId, { tool_id: 'telegram_message_send', arguments: { text: 'x' } }), { error: { code: 'connector_channel_unavailable' } })
  t.equal((await xagent.fetch('/health')).status, 200)
  await t.rejects(xagent.openChannel('cch_unknown'), /connector_channel_unavailable/)
  const known = await xagent.openChannel(channelId)
  t.equal(statusOf(known.descriptor), 'offline')
  await s.connector.start()
  await until(() => statusOf(xagent.descriptors.get(channelId)) === 'connected', 'connected again')
  t.equal(xagent.events.all('closed').length, 0)
})

t.test('an open during a short outage waits instead of being refused', async (t) => {
  const s = await stand(t)
  const { xagent } = await openChannel(s)
  await s.connector.stop()
  const opening = xagent.openChannel()
  await s.connector.start()
  t.ok((await opening).channelId)
})

t.test('each gap is logged, counted and says what the connector does meanwhile', async (t) => {
  const s = await stand(t, { store: 'lmdb' })
  const { legacyId } = await openChannel(s)
  await s.connector.stop()
  t.equal(s.connector.push(legacyId, { text: 'nobody reads this' }).outcome, 'lost')
  await s.connector.start()
  await until(async () => (await s.metric('legacy_gaps_total')) === 1, 'a gap')
  t.ok((await s.metric('legacy_gap_seconds_total')) > 0)
  t.match(s.logs.find((line) => line['cause'] === 'link_lost'), { meanwhile: 'lost', channels: 1 })
  await s.restartGateway()
  await until(() => s.logs.some((line) => line['cause'] === 'restart'), 'the gap of the restart')
})

t.test('two routes with one Card: the second is not ready, and says why', async (t) => {
  const twin = await startSimConnector({ kind: 'telegram' })
  t.teardown(() => twin.stop())
  const s = await stand(t, { connectorConfig: `  - { name: twin, url: "${twin.url}" }` })
  await until(async () => (await s.gateway.notReady()).length === 1, 'one of them is not ready')
  const [reason] = await s.gateway.notReady()
  const second = reason?.startsWith('twin') === true ? 'twin' : 'telegram'
  const first = second === 'twin' ? 'telegram' : 'twin'
  t.match(reason, `${second}: the connector "${first}" already serves the Card im.telegram`)
  const card = await fetch(`${s.baseUrl(second)}/connector-card.json`)
  t.equal(card.status, 503)
  t.equal((await fetch(`${s.baseUrl(first)}/connector-card.json`)).status, 200)
})

t.test('a gateway started while the connector is down serves the stored Card; without one it says why not', async (t) => {
  const s = await stand(t, { store: 'lmdb' })
  const { xagent, channelId } = await openChannel(s)
  await s.connector.stop()
  await s.restartGateway()
  const again = s.xagent({ connectorId: xagent.connectorId })
  await again.connect()
  t.equal(statusOf((await again.openChannel(channelId)).descriptor), 'offline')
  const fresh = await stand(t)
  await fresh.connector.stop()
  await fresh.restartGateway()
  const card = await fetch(`${fresh.baseUrl()}/connector-card.json`)
  t.equal(card.status, 503)
  t.match(await card.json(), { error: String, message: String })
  const early = fresh.xagent()
  await early.dial()
  t.match(await early.request('connector.hello', '', { connector_card_id: 'im.telegram', protocol_version: '3.0', supported_profiles: ['xagent.im.v2'] }), { type: 'error', error: { code: 'connector_unavailable' } })
})

t.test('stop waits for a running call and answers it; nothing is lost or doubled over the restart', async (t) => {
  const s = await stand(t, { store: 'lmdb' })
  const { xagent, channelId } = await openChannel(s)
  let release = (): void => {}
  s.connector.onTool(() => ({ kind: 'sent', answerAfter: new Promise<void>((resolve) => { release = resolve }) }))
  const ack = xagent.sendFinal(channelId, { messageId: 'a', text: 'x' })
  await s.connector.waitFor('tool')
  const stopped = s.restartGateway()
  await until(() => s.logs.some((line) => line['msg'] === 'the gateway stops'), 'it stops')
  t.match(await xagent.sendFinal(channelId, { messageId: 'b', text: 'too late' }), { payload: { status: 'rejected', code: 'shutting_down', retryable: true } })
  release()
  t.match(await ack, { payload: { status: 'accepted' } })
  await stopped
  t.match(await xagent.waitFor('closed'), { code: 1012 })
  t.equal(s.connector.sent.length, 1)
})

t.test('the 3.0 dialect: hello rules, files keys, tools on the main link where a channel belongs to its opener', async (t) => {
  const s = await stand(t, { dialect: '3.0' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'hello' })
  t.equal((await xagent.waitFor('message')).text, 'hello')
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'x' }), { payload: { status: 'accepted' } })
  t.equal(s.connector.sent.length, 1)
})
