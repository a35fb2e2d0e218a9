import t from 'tap'
import { client, running } from './connected.js'
import type { SimXagent } from '../../src/sim/xagent.js'

const start = (xagent: SimXagent, channelId: string, flowId: string) =>
  xagent.request('auth.start', channelId, { flow_id: flowId, input: {} })
const look = async (xagent: SimXagent, channelId: string, sessionId: unknown) =>
  xagent.request('auth.status', channelId, { auth_session_id: sessionId })

void t.test('Telegram\'s form binds the chat that it names in one step', async (t) => {
  const connector = await running(t)
  const xagent = await client(t, connector)
  const { channelId } = await xagent.openChannel()
  const input = { bot_token: 'invented', chat_id: '770000001' }
  const answer = await xagent.request('auth.start', channelId, { flow_id: 'telegram_bot_binding', input })
  t.match(answer.payload, { status: 'authenticated', connection_descriptor: { connection: { status: 'connected' } } })
  t.match(connector.push(channelId, { text: 'hi' }).payload, { chat_id: '770000001', account_hint: /770\*\*\*001/ })
})

void t.test('WeChat shows its QR code at the first look and goes on one step a look', async (t) => {
  const connector = await running(t, { kind: 'wechat' })
  const xagent = await client(t, connector)
  const { channelId } = await xagent.openChannel()
  const started = await start(xagent, channelId, 'wechat_qr_login')
  t.equal(started.payload?.['status'], 'pending')
  t.notOk('qr_code_text' in (started.payload ?? {}))
  t.notOk('connector_channel_id' in (started.payload ?? {}))
  const statuses = []
  for (let i = 0; i < 4; i += 1) {
    const { payload } = await look(xagent, channelId, started.payload?.['auth_session_id'])
    t.ok('qr_code_text' in (payload ?? {}))
    statuses.push(payload?.['status'])
  }
  t.same(statuses, ['pending', 'scanned', 'authenticated', 'authenticated'])
  t.same(xagent.events.all('descriptor'), [])
})

void t.test('WeChat loses channel and session with the socket; Feishu goes on, and the old id opens as connected', async (t) => {
  for (const [kind, flowId, survives] of [['wechat', 'wechat_qr_login', false], ['feishu', 'feishu_qr_create_app', true]] as const) {
    const connector = await running(t, { kind })
    const xagent = await client(t, connector)
    const { channelId } = await xagent.openChannel()
    const started = await start(xagent, channelId, flowId)
    await xagent.terminate()
    await connector.waitFor('disconnect')
    await xagent.connect()
    const reopened = await xagent.openChannel(channelId)
    t.equal(reopened.channelId === channelId, survives)
    t.match(reopened.descriptor, { connection: { status: survives ? 'connected' : 'created' } })
    const later = await look(xagent, reopened.channelId, started.payload?.['auth_session_id'])
    t.equal(later.error?.code, survives ? undefined : 'auth_session_not_found')
  }
})

void t.test('a second start ends the first session', async (t) => {
  const connector = await running(t, { kind: 'wechat' })
  const xagent = await client(t, connector)
  const { channelId } = await xagent.openChannel()
  const first = await start(xagent, channelId, 'wechat_qr_login')
  const second = await start(xagent, channelId, 'wechat_qr_login')
  t.equal((await look(xagent, channelId, first.payload?.['auth_session_id'])).error?.code, 'auth_session_not_found')
  t.equal((await look(xagent, channelId, second.payload?.['auth_session_id'])).payload?.['status'], 'pending')
})

void t.test('a cancel ends a session, is ignored for one that is done, and finds no unknown one', async (t) => {
  const connector = await running(t, { kind: 'feishu' })
  const xagent = await client(t, connector)
  const { channelId } = await xagent.openChannel()
  const cancel = (sessionId: unknown) => xagent.request('auth.cancel', channelId, { auth_session_id: sessionId })
  const first = (await start(xagent, channelId, 'feishu_qr_create_app')).payload?.['auth_session_id']
  t.same((await cancel(first)).payload, { status: 'canceled', auth_status: 'pending' })
  t.same((await cancel(first)).payload, { status: 'not_found' })
  const second = (await start(xagent, channelId, 'feishu_qr_create_app')).payload?.['auth_session_id']
  await look(xagent, channelId, second)
  await look(xagent, channelId, second)
  t.same((await cancel(second)).payload, { status: 'ignored', auth_status: 'authenticated' })
})

void t.test('sign-ins can be scripted: an expiry, and an error that carries a token as the real one does', async (t) => {
  const connector = await running(t, { kind: 'wechat' })
  const xagent = await client(t, connector)
  const { channelId } = await xagent.openChannel()
  connector.scriptSignIn(['pending', 'expired'])
  const session = (await start(xagent, channelId, 'wechat_qr_login')).payload?.['auth_session_id']
  await look(xagent, channelId, session)
  t.equal((await look(xagent, channelId, session)).payload?.['status'], 'expired')

  const telegram = await running(t)
  const other = await client(t, telegram)
  const unbound = await other.openChannel()
  telegram.scriptSignIn([{ error: 'Get "https://platform.example/bot7000001:AAinvented/getMe": EOF' }])
  const refused = await start(other, unbound.channelId, 'telegram_bot_binding')
  t.match(refused.error, { code: 'auth_start_failed', message: /AAinvented/ })
})

void t.test('a WeChat account that is signed in on a second channel leaves the first, without a packet', async (t) => {
  const connector = await running(t, { kind: 'wechat' })
  const xagent = await client(t, connector)
  const [first, second] = [await xagent.openChannel(), await xagent.openChannel()]
  connector.signIn(first.channelId, { account: 'the shop' })
  const before = xagent.events.all('packet').length
  connector.scriptSignIn(['authenticated'], 'the shop')
  const started = await start(xagent, second.channelId, 'wechat_qr_login')
  await look(xagent, second.channelId, started.payload?.['auth_session_id'])
  t.same(connector.channels().map(({ signedIn }) => signedIn), [false, true])
  t.same(xagent.events.all('packet').slice(before).map(({ type }) => type), ['auth.start.ack', 'auth.status.ack'])
  const descriptor = await xagent.request('connection.descriptor.get', first.channelId, {})
  t.match(descriptor.payload, { connection_descriptor: { connection: { status: 'created' } } })
  connector.signIn(second.channelId, { account: 'the owner' })
  t.same(connector.channels().map(({ signedIn }) => signedIn), [false, true], 'another account moves nobody')
})

void t.test('a Feishu app may be signed in on two channels', async (t) => {
  const connector = await running(t, { kind: 'feishu' })
  const xagent = await client(t, connector)
  for (let i = 0; i < 2; i += 1) connector.signIn((await xagent.openChannel()).channelId, { account: 'the shop' })
  t.same(connector.channels().map(({ signedIn }) => signedIn), [true, true])
})
