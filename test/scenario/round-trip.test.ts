import t from 'tap'
import { stand, until } from '../helper/stand.js'

t.test('a user message is translated, acked and answered through the tool', async (t) => {
  const { connector, xagent: newXagent, metric } = await stand(t, { store: 'lmdb' })
  const xagent = newXagent()
  await xagent.connect()
  const { channelId, descriptor } = await xagent.openChannel()
  t.match(descriptor, { connection: { connector_channel_id: channelId, profiles: ['xagent.im.v2'], status: 'created' } })
  const legacy = connector.channels()[0]
  t.ok(legacy)
  t.not(legacy?.channelId, channelId, 'the northbound id is the gateway\'s own')
  connector.signIn(legacy?.channelId ?? '')
  connector.push(legacy?.channelId ?? '', { text: 'hello there' })
  const message = await xagent.waitFor('message')
  t.equal(message.text, 'hello there')
  t.equal(message.channelId, channelId)
  t.match(message.payload, { message_id: /^m_/, created_at: Number })
  t.strictSame(Object.keys(message.payload).sort(), ['created_at', 'message_id', 'text'])
  const ack = await xagent.sendFinal(channelId, { messageId: 'assistant_1', text: 'general kenobi' })
  t.match(ack, { type: 'chat.message.ack', payload: { message_id: 'assistant_1', status: 'accepted' } })
  t.strictSame(connector.sent.map(({ text }) => text), ['general kenobi'])
  await until(async () => (await metric('messages_total', { direction: 'inbound', outcome: 'accepted' })) === 1, 'the message is counted')
  t.equal(await metric('messages_total', { direction: 'outbound', outcome: 'accepted' }), 1)
  t.equal(await metric('ledger_imbalance', { direction: 'inbound' }), 0)
  t.equal(await metric('ledger_imbalance', { direction: 'outbound' }), 0)
})
