/** Which calls of an agent reach a person (DESIGN §4 rule 7): by the preset's rules, or by what the Card says. */
import t from 'tap'
import { presetOf } from './golden.js'
import { cardTools } from '../../src/translate/reply-target.js'
import { sends } from '../../src/translate/tool-call.js'
import type { ToolId } from '../../src/protocol/ids.js'

/** A Card with tools that require these arguments, besides the channel. */
const tools = (required: Readonly<Record<string, readonly string[]>>) => cardTools({
  tools: Object.entries(required).map(([tool_id, names]) => ({ tool_id, input_schema: { type: 'object', required: ['connector_channel_id', ...names] } })),
})

const said = (preset: Parameters<typeof presetOf>[0], required: Readonly<Record<string, readonly string[]>>) =>
  Object.fromEntries(Object.keys(required).map((tool) => [tool, sends(tool as ToolId, presetOf(preset), tools(required), null)]))

t.test('a preset that names its reply tools: those send, and no other', async (t) => {
  t.strictSame(said('wechat', { wechat_message_send: ['recipient_ref', 'text'], wechat_message_send_media: ['media_ref'], note: ['text'] }), { wechat_message_send: 'text', wechat_message_send_media: 'file', note: null })
})

t.test('without a preset: the only tool that takes nothing but a text, or a file, sends', async (t) => {
  t.strictSame(said('generic', { send: ['text'], send_file: ['media_ref'], reply: ['reply_ref', 'text'], lookup: ['query'] }), { send: 'text', send_file: 'file', reply: null, lookup: null })
  t.strictSame(said('generic', { send: ['text'], shout: ['text'], put: ['media_ref'], post: ['file_ref'] }), { send: 'unclear', shout: 'unclear', put: 'unclear', post: 'unclear' }, 'several: nothing says which')
})
