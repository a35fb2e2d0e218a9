import t from 'tap'
import { reached, run } from '../helper/people.js'
import { openChannel, stand, until, type Stand } from '../helper/stand.js'
import type { SimXagent } from '../../src/sim/xagent.js'

const statusIn = (descriptor: Record<string, unknown>): unknown => (descriptor['connection'] as Record<string, unknown> | undefined)?.['status']

t.test('form sign-in is relayed and normalised: own session ids, channel id filled in, Descriptor projected', async (t) => {
  const s = await stand(t)
  const xagent = s.xagent()
  await xagent.connect()
  const { channelId } = await xagent.openChannel()
  const ack = await xagent.request('auth.start', channelId, { flow_id: 'telegram_bot_binding', input: { bot_token: '7000001:AAinvented-token-0000000000000000000', chat_id: '880000042' } })
  t.match(ack, {
    type: 'auth.start.ack',
    payload: {
      connector_channel_id: channelId, flow_id: 'telegram_bot_binding', status: 'authenticated', auth_session_id: /^auth_/,
      connection_descriptor: { schema: 'xagent.connection/v2', connection: { connector_channel_id: channelId, profiles: ['xagent.im.v2'], status: 'connected' } },
    },
  })
  const session = ack.payload?.['auth_session_id']
  t.match(await xagent.request('auth.status', channelId, { flow_id: 'telegram_bot_binding', auth_session_id: session }), { payload: { auth_session_id: session, status: 'authenticated' } })
  t.notMatch(s.logText(), /AAinvented/, 'inputs are never logged')
  t.match(await xagent.request('auth.status', channelId, { auth_session_id: 'auth_unknown' }), { type: 'auth.status.ack', error: { code: 'auth_session_not_found' } })
  t.match(await xagent.request('auth.start', channelId, { flow_id: 'nope', input: {} }), { type: 'auth.start.ack', error: { code: 'auth_start_failed' } })
  t.match(await xagent.request('auth.logout', channelId, {}), { type: 'auth.logout.ack', payload: { status: 'ok', connection_descriptor: { connection: { status: 'created' } } } })
})

t.test('QR sign-in: the code comes with auth.status, progress while polled', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const xagent = s.xagent()
  await xagent.connect()
  const { channelId } = await xagent.openChannel()
  const start = await xagent.request('auth.start', channelId, { flow_id: 'wechat_qr_login', input: {} })
  t.match(start, { payload: { connector_channel_id: channelId, status: 'pending' } })
  const session = start.payload?.['auth_session_id']
  const statuses: unknown[] = []
  for (let i = 0; i < 10 && statuses.at(-1) !== 'authenticated'; i += 1) {
    const status = await xagent.request('auth.status', channelId, { flow_id: 'wechat_qr_login', auth_session_id: session })
    t.match(status.payload, { connector_channel_id: channelId, auth_session_id: session, qr_code_text: String })
    statuses.push(status.payload?.['status'])
  }
  t.equal(statuses.at(-1), 'authenticated')
})

/** Starts a sign-in by QR code and looks at it until it has this status; answers what was seen. */
async function lookUntil(xagent: SimXagent, channelId: string, flowId: string, session: unknown, wanted: string): Promise<Record<string, unknown>> {
  let payload: Record<string, unknown> = {}
  await until(async () => {
    payload = (await xagent.request('auth.status', channelId, { flow_id: flowId, auth_session_id: session })).payload ?? {}
    return payload['status'] === wanted
  }, `the sign-in becomes ${wanted}`)
  return payload
}

async function started(s: Stand, flowId: string): Promise<{ xagent: SimXagent; channelId: string; session: unknown }> {
  const xagent = s.xagent()
  await xagent.connect()
  const { channelId } = await xagent.openChannel()
  const start = await xagent.request('auth.start', channelId, { flow_id: flowId, input: {} })
  t.match(start, { payload: { connector_channel_id: channelId, status: 'pending' } })
  return { xagent, channelId, session: start.payload?.['auth_session_id'] }
}

t.test('Feishu: the QR code comes first with auth.status, and the Descriptor is pushed', async (t) => {
  const s = await stand(t, { kind: 'feishu' })
  const { xagent, channelId, session } = await started(s, 'feishu_qr_create_app')
  const pushed = xagent.events.waitFor('descriptor', ({ descriptor }) => statusIn(descriptor) === 'connected')
  const done = await lookUntil(xagent, channelId, 'feishu_qr_create_app', session, 'authenticated')
  t.match(done, { connector_channel_id: channelId, qr_code_text: /^https:/, qr_code_image: /^data:image/, connection_descriptor: { connection: { status: 'connected' } } })
  t.ok(await pushed)
})

t.test('a socket lost in the middle of a WeChat sign-in: the session is over, and a new one goes through', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, session } = await started(s, 'wechat_qr_login')
  s.connector.dropSockets()
  await lookUntil(xagent, channelId, 'wechat_qr_login', session, 'expired')
  const again = await xagent.request('auth.start', channelId, { flow_id: 'wechat_qr_login', input: {} })
  await lookUntil(xagent, channelId, 'wechat_qr_login', again.payload?.['auth_session_id'], 'authenticated')
  t.match(await xagent.request('connection.descriptor.get', channelId, {}), { payload: { connection_descriptor: { connection: { connector_channel_id: channelId, status: 'connected' } } } })
})

t.test('a socket lost in the middle of a Feishu sign-in: it goes on, and the old session says so', async (t) => {
  const s = await stand(t, { kind: 'feishu' })
  const { xagent, channelId, session } = await started(s, 'feishu_qr_create_app')
  s.connector.dropSockets()
  t.match(await lookUntil(xagent, channelId, 'feishu_qr_create_app', session, 'authenticated'), { connector_channel_id: channelId, auth_session_id: session })
})

t.test('while the connector is away a sign-in is pending, and one that went through stays so', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, session } = await started(s, 'wechat_qr_login')
  await s.connector.stop()
  await until(() => s.logs.some(({ msg }) => msg === 'the connector is gone'), 'the link is lost')
  t.match((await xagent.request('auth.status', channelId, { auth_session_id: session })).payload, { status: 'pending', auth_session_id: session })
})

t.test('an expired QR code, a failed sign-in and a second start', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, session } = await started(s, 'wechat_qr_login')
  const second = await xagent.request('auth.start', channelId, { flow_id: 'wechat_qr_login', input: {} })
  const secondSession = second.payload?.['auth_session_id']
  t.not(secondSession, session)
  t.equal((await xagent.request('auth.status', channelId, { auth_session_id: session })).payload?.['status'], 'expired', 'a second start ends the first session')
  t.match(await xagent.request('auth.cancel', channelId, { auth_session_id: secondSession }), { payload: { auth_session_id: secondSession, status: 'canceled' } })
  for (const steps of [['pending', 'expired'], ['pending', 'scanned', 'failed'], ['pending', 'qr_refresh_required']] as const) {
    s.connector.scriptSignIn(steps)
    const { payload } = await xagent.request('auth.start', channelId, { flow_id: 'wechat_qr_login', input: {} })
    const end = await lookUntil(xagent, channelId, 'wechat_qr_login', payload?.['auth_session_id'], steps.at(-1) ?? '')
    t.match(end, { connector_channel_id: channelId, flow_id: 'wechat_qr_login' })
  }
})

t.test('a channel that is bound anew is logged out first, and earlier writers are forgotten', async (t) => {
  const s = await stand(t, { kind: 'feishu' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  await xagent.request('connection.descriptor.get', channelId, {})
  s.connector.push(legacyId, { text: 'from ann', senderId: 'ann' })
  await xagent.events.waitFor('message')
  const start = await xagent.request('auth.start', channelId, { flow_id: 'feishu_qr_create_app', input: {} })
  t.match(start, { payload: { status: 'pending' } })
  const types = s.connector.events.all('packet').map(({ packet }) => packet.type).filter((type) => type.startsWith('auth.'))
  t.strictSame(types, ['auth.logout', 'auth.start'])
  await lookUntil(xagent, channelId, 'feishu_qr_create_app', start.payload?.['auth_session_id'], 'authenticated')
  t.match(await xagent.sendFinal(channelId, { messageId: 'f1', text: 'to whom?' }), { payload: { status: 'rejected', code: 'no_reply_target', retryable: false } })
})

t.test('who writes before xAgent has seen the sign-in through is answered under the new account, and nobody else', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  await xagent.request('connection.descriptor.get', channelId, {})
  s.connector.push(legacyId, { text: 'from ann', senderId: 'ann' })
  await xagent.events.waitFor('message')
  s.connector.onTool(() => ({ kind: 'error', error: { code: 'tool_invoke_failed', message: 'WeChat API HTTP 429' } }))
  const refused = await run(xagent, channelId, 'f1', 'for ann')
  t.match(refused, { payload: { status: 'rejected', code: 'target_temporarily_unavailable', retryable: true } })
  s.connector.onTool(() => undefined)
  const start = await xagent.request('auth.start', channelId, { flow_id: 'wechat_qr_login', input: {} })
  s.connector.signIn(legacyId)
  s.connector.push(legacyId, { text: 'from cyd', senderId: 'cyd', messageId: '7200000001' })
  await xagent.events.waitFor('message', ({ text }) => text === 'from cyd')
  await lookUntil(xagent, channelId, 'wechat_qr_login', start.payload?.['auth_session_id'], 'authenticated')
  t.match(await run(xagent, channelId, 'f2', 'for cyd'), { payload: { status: 'accepted' } })
  t.match(await xagent.sendFinal(channelId, { messageId: 'f1', text: 'for ann' }), { payload: { status: 'rejected', code: 'no_reply_target', retryable: false } })
  t.strictSame(reached(s.connector), [['cyd', 'for cyd']])
})

t.test('a dead WeChat sign-in is shown: the Descriptor says created, and nobody is answered through it', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  await xagent.request('connection.descriptor.get', channelId, {})
  const shown = xagent.events.next('descriptor', ({ descriptor }) => statusIn(descriptor) === 'created')
  s.connector.loseToken(legacyId)
  t.ok(await shown)
  t.ok(s.logs.some(({ msg }) => String(msg).startsWith('the account of a channel has left it')))
})

t.test('an outcome of class auth shows the channel as degraded until something is sent', async (t) => {
  const s = await stand(t)
  const { xagent, channelId, legacyId } = await openChannel(s)
  await xagent.request('connection.descriptor.get', channelId, {})
  s.connector.push(legacyId, { text: 'hello' })
  await xagent.events.waitFor('message')
  s.connector.onTool(() => ({ kind: 'error', error: { code: 'tool_invoke_failed', message: 'Telegram API error 401: Unauthorized' } }))
  const degraded = xagent.events.next('descriptor', ({ descriptor }) => statusIn(descriptor) === 'degraded')
  t.match(await xagent.sendFinal(channelId, { messageId: 'f1', text: 'one' }), { payload: { status: 'rejected', retryable: false } })
  t.match(await degraded, { descriptor: { tools: [{ status: 'available', reason: String }] } })
  s.connector.onTool(() => undefined)
  const again = xagent.events.next('descriptor', ({ descriptor }) => statusIn(descriptor) === 'connected')
  t.match(await xagent.sendFinal(channelId, { messageId: 'f2', text: 'two' }), { payload: { status: 'accepted' } })
  t.ok(await again)
})
