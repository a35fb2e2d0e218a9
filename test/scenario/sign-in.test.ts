import t from 'tap'
import { stand } from '../helper/stand.js'

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
