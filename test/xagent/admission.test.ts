import t from 'tap'
import { createHash } from 'node:crypto'
import { cardSchema, descriptorSchema, healthSchema, packetProblem, skillNameOf } from '../helper/north-schemas.js'
import { openChannel, stand, until } from '../helper/stand.js'

for (const kind of ['telegram', 'wechat', 'feishu', 'generic'] as const) {
  for (const dialect of ['1.0', '3.0'] as const) {
    t.test(`protocol 3.0 admission of a ${kind} connector in dialect ${dialect}: Card, Skill, health, Descriptor`, async (t) => {
      const s = await stand(t, { kind, dialect })
      const { xagent, channelId, legacyId } = await openChannel(s)
      const answer = await xagent.fetch('/connector-card.json')
      const parsed = cardSchema.safeParse(JSON.parse(answer.text))
      t.ok(parsed.success, parsed.error?.message ?? 'the Card')
      if (!parsed.success) return
      const card = parsed.data
      for (const hidden of [s.connector.url, 'im-connector-reply', '/media/', 'reply_ref', 'media_ref', legacyId, s.connector.connectorId ?? '?']) t.notOk(answer.text.includes(hidden), `no ${hidden} in the Card`)
      const skill = await xagent.fetch('/skill.md')
      const name = skillNameOf(card.connector_card_id)
      t.equal(skill.headers.get('x-xagent-skill-id'), name)
      t.equal(skill.headers.get('x-xagent-skill-sha256'), createHash('sha256').update(skill.text).digest('hex'))
      t.match(skill.text, new RegExp(`^---\\nname: ${name}\\n`))
      t.notMatch(skill.text, /\/media|media_ref|reply_ref|im-connector-reply/)
      t.ok(card.tools.every((tool) => tool.related_skill_ids.length === 1 && tool.related_skill_ids[0] === name), 'one name everywhere')
      const health = healthSchema.safeParse(JSON.parse((await xagent.fetch('/health')).text))
      t.ok(health.success, health.error?.message ?? 'health')
      t.match(health.data, { connector_card_id: card.connector_card_id, connector_card_version: card.connector.version, build: card.build })
      const { payload } = await xagent.request('connection.descriptor.get', channelId, {})
      const descriptor = descriptorSchema.safeParse(payload?.['connection_descriptor'])
      t.ok(descriptor.success, descriptor.error?.message ?? 'the Descriptor')
      t.match(descriptor.data, { connection: { connector_id: xagent.connectorId, connector_channel_id: channelId, status: 'connected' } })
      t.ok(descriptor.data?.tools.every((tool) => card.tools.some(({ tool_id: id }) => id === tool.tool_id)), 'only tools of the Card')
      t.equal((await xagent.fetch('/connector-card.json')).text, answer.text, 'byte by byte the same')
    })
  }
}

t.test('every packet that the gateway sends to xAgent is one that protocol and profile know', async (t) => {
  const s = await stand(t, { config: 'delivery: { ack_timeout: 100ms, tool_timeout: 300ms }' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'hello', fields: { session_id: 'x' } })
  await xagent.waitFor('message')
  await xagent.sendFinal(channelId, { messageId: 'a', text: 'x' })
  await xagent.sendFinal(channelId, { messageId: 'a', text: 'x' })
  await xagent.sendFinal(channelId, { messageId: 'a', text: 'y' })
  await xagent.sendFinal(channelId, { messageId: 'b' })
  await xagent.sendFinal(channelId, { messageId: '', text: 'x' })
  for (const message of ['Telegram API HTTP 403', 'Telegram API HTTP 429', 'Telegram API HTTP 401', 'who knows']) {
    s.connector.onTool(() => ({ kind: 'error', error: { code: 'tool_invoke_failed', message } }))
    await xagent.sendFinal(channelId, { messageId: message, text: 'x' })
    await xagent.request('tool.invoke', channelId, { tool_id: 'telegram_message_send', arguments: { text: 'x' } })
  }
  s.connector.onTool(() => undefined)
  await xagent.request('tool.invoke', channelId, { tool_id: 'telegram_message_send', arguments: { text: 'x' } })
  for (const type of ['ping', 'connection.descriptor.get', 'brand.new', 'auth.logout', 'channel.close', 'channel.open']) await xagent.request(type, type === 'ping' ? '' : channelId, {})
  await xagent.request('auth.start', channelId, { flow_id: 'telegram_bot_binding', input: { bot_token: '1:x', chat_id: '880000042' } })
  await xagent.request('auth.status', channelId, { auth_session_id: 'unknown' })
  await s.connector.stop()
  await xagent.waitFor('descriptor', ({ descriptor }) => (descriptor['connection'] as { status: string }).status === 'offline')
  await xagent.request('tool.invoke', channelId, { tool_id: 'telegram_message_send', arguments: { text: 'x' } })
  const packets = xagent.events.all('packet')
  t.ok(packets.length > 25)
  for (const packet of packets) t.equal(packetProblem(packet), null, packet.type)
  await until(async () => (await s.metric('ledger_imbalance', { direction: 'outbound' })) === 0, 'the books balance')
})

t.test('the Card\'s version changes when the connector\'s tools change, and only then', async (t) => {
  const { projectCard } = await import('../../src/translate/card.js')
  const { loadPresets } = await import('../../src/config/package-files.js')
  const preset = loadPresets().get('generic')!
  const legacy = (tools: string[], extra: object = {}) => ({
    schema: 'xagent.connector/v1', connector_card_id: 'im.own', connector: { name: 'Own', version: '1.2.3' }, supports: { target_types: ['im'], profiles: ['xagent.im.v1'] },
    tools: tools.map((id) => ({ tool_id: id, input_schema: { type: 'object', properties: { text: { type: 'string' }, connector_channel_id: { type: 'string' } }, required: ['text', 'connector_channel_id'] } })), ...extra,
  })
  const version = (card: object) => projectCard(card as never, { preset, build: { build_time: 'x' }, apiKeyRequired: true, files: false, skill: null })?.version
  t.match(version(legacy(['a'])), /^1\.2\.3\+gateway\.[0-9a-f]{8}$/)
  t.equal(version(legacy(['a'])), version(legacy(['a'], { nobody_reads: 'this' })))
  t.not(version(legacy(['a'])), version(legacy(['a', 'b'])))
})
