import t from 'tap'
import { SimXagent } from '../../src/sim/xagent.js'
import { client, isPush, running, signedIn } from './connected.js'

const helloId = async (xagent: SimXagent, connectorId: string) =>
  (await xagent.hello({ connector_id: connectorId })).payload?.['connector_id']

void t.test('checks the card id alone in hello, and nothing else of it', async (t) => {
  const connector = await running(t)
  const xagent = new SimXagent({ baseUrl: connector.url, protocolVersion: null, profiles: null })
  t.teardown(() => xagent.terminate())
  await xagent.dial()
  t.equal((await xagent.hello()).type, 'connector.hello.ack')
})

void t.test('a wrong card id takes back the hello, while pushes go on', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  t.equal((await xagent.hello({ connector_card_id: 'im.other' })).error?.code, 'connector_card_id_mismatch')
  t.equal((await xagent.request('ping', channelId, {})).error?.code, 'hello_required')
  connector.push(channelId, { text: 'still here' })
  t.equal((await xagent.waitFor('packet', isPush)).payload?.['raw_text'], 'still here')
})

void t.test('adopts the first connector_id, keeps it for the same one, and makes a new one for a later different one', async (t) => {
  const connector = await running(t)
  const xagent = await client(t, connector)
  const given = xagent.connectorId
  t.match(given, /^conn_im\.telegram_/)
  t.equal(await helloId(xagent, ''), given)
  t.equal(await helloId(xagent, given), given)
  const other = await helloId(xagent, 'conn-of-somebody-else')
  t.notOk([given, 'conn-of-somebody-else'].includes(String(other)))
  t.equal(await helloId(xagent, ''), other, 'the new one is everybody\'s')
})

void t.test('adopts the stored connector_id of the first hello after a restart', async (t) => {
  const connector = await running(t)
  const xagent = await client(t, connector)
  const before = xagent.connectorId
  await connector.restart()
  await xagent.waitFor('closed')
  await xagent.connect()
  t.equal(xagent.connectorId, before)
})

void t.test('a restart with new ids flips the connector_id and forgets every channel', async (t) => {
  const connector = await running(t)
  const { xagent, channelId } = await signedIn(t, connector)
  const before = xagent.connectorId
  await connector.restart({ newIds: true })
  await xagent.waitFor('closed')
  await xagent.connect()
  t.not(xagent.connectorId, before)
  t.not((await xagent.openChannel(channelId)).channelId, channelId)
})

void t.test('the 3.0 dialect refuses a hello without version or profiles, and answers with its version', async (t) => {
  const connector = await running(t, { dialect: '3.0' })
  const bare = new SimXagent({ baseUrl: connector.url, protocolVersion: null })
  t.teardown(() => bare.terminate())
  await t.rejects(bare.connect(), /protocol_version_unsupported/)
  const noProfiles = new SimXagent({ baseUrl: connector.url, profiles: null })
  t.teardown(() => noProfiles.terminate())
  await t.rejects(noProfiles.connect(), /profile_not_supported/)
  const xagent = await client(t, connector)
  t.equal((await xagent.hello()).payload?.['protocol_version'], '3.0')
})

void t.test('a wrong or missing key is a 401 on health and on the upgrade; Card and Skill are open to all', async (t) => {
  const connector = await running(t, { apiKey: 'right', prefix: '/telegram' })
  for (const apiKey of [null, 'wrong']) {
    const stranger = new SimXagent({ baseUrl: connector.url, apiKey })
    const health = await stranger.fetch('/health')
    t.equal(health.status, 401)
    t.equal(health.text, '{"error":"unauthorized"}')
    await t.rejects(stranger.connect(), /refused with 401/)
    t.equal((await stranger.fetch('/connector-card.json')).status, 200)
    t.match((await stranger.fetch('/skill.md')).text, /^---\nname: im-connector-reply\n/)
  }
  const xagent = await client(t, connector, 'right')
  t.equal((await xagent.fetch('/health')).status, 200)
})

void t.test('Card and health say protocol and build in the 3.0 dialect alone', async (t) => {
  for (const [dialect, present] of [['1.0', false], ['3.0', true]] as const) {
    const connector = await running(t, { dialect })
    const xagent = new SimXagent({ baseUrl: connector.url })
    for (const path of ['/connector-card.json', '/health'] as const) {
      const document = await xagent.fetchJson(path)
      t.equal('protocol_version' in document, present, `${dialect} ${path}`)
      t.equal('build' in document, present, `${dialect} ${path}`)
    }
  }
})

void t.test('ignores binary frames, and answers bad JSON with an error that names no request', async (t) => {
  const connector = await running(t)
  const xagent = await client(t, connector)
  xagent.sendBinary(Buffer.from('{"type":"ping"}'))
  xagent.sendRaw('{oops')
  const answer = await xagent.waitFor('error')
  t.equal(answer.error?.code, 'invalid_packet')
  t.equal(answer.request_id, undefined)
  t.equal(xagent.events.all('error').length, 1)
})

void t.test('knows no ack of a push and no pong: both are unsupported packets', async (t) => {
  const connector = await running(t)
  const xagent = await client(t, connector)
  for (const type of ['message.push.ack', 'pong', 'chat.message']) {
    const answer = await xagent.request(type, '', {})
    t.equal(answer.type, 'error')
    t.equal(answer.error?.code, 'unsupported_packet')
    t.equal(answer.reply_to, undefined)
  }
})

void t.test('ends every socket without a close frame, on a stop and on a drop', async (t) => {
  const connector = await running(t)
  const [dropped, stopped] = [await client(t, connector), await client(t, connector)]
  connector.dropSockets(1)
  t.equal((await dropped.waitFor('closed')).code, 1006)
  await connector.stop()
  t.equal((await stopped.waitFor('closed')).code, 1006)
  await t.rejects(stopped.connect(), /ECONNREFUSED|fetch failed/)
})

