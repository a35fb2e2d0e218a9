import t from 'tap'
import type { JsonObject } from '../../src/protocol/packet.js'
import { projectCard, type ProjectedTool } from '../../src/translate/card.js'
import { presetOf } from './golden.js'

const V1 = 'Load im-connector-reply first.'

function projectedTool(tool: JsonObject): ProjectedTool | undefined {
  const card = projectCard({ connector_card_id: 'im.any', tools: [{ tool_id: 'look', ...tool }] }, { preset: presetOf('generic'), build: {}, apiKeyRequired: false, files: false, skill: null })
  return card?.tools.get('look' as never)
}

t.test('a title and a description that were not written for v1 stay, others are replaced', async (t) => {
  t.match(projectedTool({ title: 'Look up', description: 'Finds a chat.' }), { title: 'Look up', description: 'Finds a chat.' })
  t.match(projectedTool({ title: V1, description: V1 }), { title: 'look', description: 'A tool of the connector im.any.' })
})

t.test('annotations that were written for v1 go from a schema; what decides stays', async (t) => {
  const tool = projectedTool({ input_schema: { type: 'object', properties: {
    mode: { type: 'string', enum: ['reply', 'new'], title: V1, $comment: V1, default: 'reply', examples: [V1], description: V1 },
    limit: { type: 'integer', title: 'How many', default: 5, examples: [5], description: 'At most this many.' },
  } } })
  t.strictSame(tool?.inputSchema['properties'], {
    mode: { type: 'string', enum: ['reply', 'new'] },
    limit: { type: 'integer', title: 'How many', default: 5, examples: [5], description: 'At most this many.' },
    connector_channel_id: { type: 'string' },
  })
})

t.test('properties may be named like annotations', async (t) => {
  const inner = { type: 'object', properties: { description: { type: 'string' }, title: { type: 'string', description: V1 }, default: { type: 'string' } }, required: ['description'] }
  t.match(projectedTool({ input_schema: { properties: { description: { type: 'string' }, event: inner } } })?.inputSchema['properties'], {
    description: { type: 'string' }, event: { ...inner, properties: { description: { type: 'string' }, title: { type: 'string' }, default: { type: 'string' } } },
  })
})

t.test('tools that need a reply reference, and hidden ones, are not shown', async (t) => {
  t.equal(projectedTool({ input_schema: { properties: { reply_ref: { type: 'string' } }, required: ['reply_ref'] } }), undefined)
  const wechat = projectCard({ connector_card_id: 'im.wechat', tools: [{ tool_id: 'wechat_typing' }] }, { preset: presetOf('wechat'), build: {}, apiKeyRequired: false, files: false, skill: null })
  t.equal(wechat?.tools.size, 0)
})

t.test('a connector that speaks v2 loses nothing that was written for v2', async (t) => {
  const tool = { tool_id: 'send', title: 'Reply', description: V1, input_schema: { type: 'object', properties: { file_ref: { type: 'string', description: V1 }, reply_token: { type: 'string' }, connector_card_id: { type: 'string' } }, required: ['reply_token', 'connector_card_id'] } }
  const legacy = { connector_card_id: 'im.any', supports: { profiles: ['xagent.im.v1', 'xagent.im.v2'] }, tools: [tool] }
  const card = projectCard(legacy, { preset: presetOf('generic'), build: {}, apiKeyRequired: false, files: false, skill: null })
  t.equal(card?.spoken, 'xagent.im.v2')
  t.strictSame(card?.card['tools'], [{
    tool_id: 'send', profile: 'xagent.im.v2', title: 'Reply', description: V1, related_skill_ids: ['connector-im-any'],
    input_schema: {
      type: 'object', properties: { file_ref: { type: 'string', description: V1 }, reply_token: { type: 'string' }, connector_channel_id: { type: 'string' } },
      required: ['reply_token', 'connector_channel_id'],
    },
  }])
  t.equal(projectedTool({})?.toolId, 'look')
})
