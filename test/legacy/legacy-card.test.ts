import t from 'tap'
import { readCard, readHealth } from '../../src/legacy/legacy-card.js'
import { CONNECTORS, recordedBody } from './recorded.js'

for (const connector of CONNECTORS) {
  t.test(`reads the recorded Card and health of ${connector}`, async (t) => {
    const card = readCard(recordedBody(connector, 'card'))
    t.match(card, { ok: true, value: { cardId: `im.${connector}`, version: '0.0.4', protocolVersion: null, profiles: ['xagent.im.v1'] } })
    t.same(card.ok && card.value.deviations, ['card_without_protocol_version', 'card_without_build'])
    t.same(readHealth(recordedBody(connector, 'health')), {
      ok: true, cardId: `im.${connector}`, cardVersion: '0.0.4', protocolVersion: null,
      deviations: ['health_without_protocol_version', 'health_without_build'],
    })
  })
}

const CURRENT = {
  schema: 'xagent.connector/v1', protocol_version: '3.0', build: { build_time: '2026-01-01T00:00:00Z' }, connector_card_id: 'im.example',
  connector: { name: 'Example', version: '1.2.0' }, supports: { target_types: ['im'], profiles: ['xagent.im.v1', 'xagent.im.v1'] },
  tools: [{ tool_id: 'example_send' }],
}

t.test('reads a Card of the 3.0 dialect without a deviation', async (t) => {
  const card = readCard(CURRENT)
  t.match(card, { ok: true, value: { version: '1.2.0', protocolVersion: '3.0', profiles: ['xagent.im.v1'], toolIds: ['example_send'] } })
  t.same(card.ok && card.value.deviations, [])
})

t.test('a tool that is listed twice or without an id is a deviation', async (t) => {
  for (const extra of [{ tool_id: 'example_send' }, {}, null]) {
    const card = readCard({ ...CURRENT, tools: [...CURRENT.tools, extra] })
    t.match(card, { ok: true, value: { toolIds: ['example_send'], deviations: ['card_tool'] } })
  }
})

t.test('a Card without schema, id or profile cannot be used', async (t) => {
  for (const change of [{ schema: 'xagent.connector/v9' }, { connector_card_id: '' }, { supports: { profiles: [] } }, { supports: null }]) {
    t.match(readCard({ ...CURRENT, ...change }), { ok: false, error: { code: 'invalid_packet' } })
  }
})

t.test('health of a connector that is not well says so', async (t) => {
  t.equal(readHealth({ status: 'degraded' }).ok, false)
})
