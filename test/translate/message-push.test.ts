import t from 'tap'
import fc from 'fast-check'
import { loadPresets } from '../../src/config/package-files.js'
import { messagePayload } from '../../src/protocol/im-v2.js'
import { digest } from '../../src/translate/conversation.js'
import { translatePush, type InboundRules, type TranslatedPush } from '../../src/translate/message-push.js'
import type { Preset } from '../../src/translate/preset.js'

const presets = loadPresets()
const NOW = Date.UTC(2026, 0, 1)

function translate(payload: Record<string, unknown>, more: { preset?: string; overrides?: Partial<Preset>; rules?: Partial<InboundRules> } = {}): TranslatedPush {
  return translatePush({ profile: 'xagent.im.v1', event_kind: 'im.message.received', message_id: '1', ...payload }, {
    preset: { ...presets.get(more.preset ?? 'generic')!, ...more.overrides }, rules: { accept: 'all', commands: 'private', senderLine: 'off', ...more.rules },
    tools: new Map(), now: NOW, files: true, freshId: () => 'fresh',
  })
}
const textOf = (push: TranslatedPush): string => (push.kind === 'message' ? push.body.text : `(${push.kind})`)

t.test('raw_text is the words, byte for byte, whatever the wrapper says (trap 1)', async (t) => {
  t.equal(textOf(translate({ raw_text: '  /status north \n', text: 'Message from Sam: /status', content: 'x' })), '  /status north \n')
})

t.test('text serves only where raw_text is absent, and never where the preset calls it a wrapper', async (t) => {
  t.equal(textOf(translate({ text: 'the words' })), 'the words')
  t.equal(textOf(translate({ raw_text: '', text: 'the wrapper' })), '(empty)')
  t.equal(textOf(translate({ raw_text: null, text: 'the wrapper' })), '(empty)')
  t.equal(textOf(translate({ text: 'the wrapper' }, { preset: 'telegram' })), '(empty)')
})

t.test('mention placeholders are cut from the front; a bare mention leaves nothing to say', async (t) => {
  const overrides = { stripLeading: ['@_user_'] }
  t.equal(textOf(translate({ raw_text: '@_user_1 status of line 4?' }, { overrides })), 'status of line 4?')
  t.equal(textOf(translate({ raw_text: '@_user_1 @_user_2 hello @_user_3' }, { overrides })), 'hello @_user_3')
  t.equal(textOf(translate({ raw_text: '@_user_1' }, { overrides })), '(empty)')
  t.equal(textOf(translate({ raw_text: '@_user_experience is a word' }, { overrides })), '@_user_experience is a word')
  t.equal(textOf(translate({ raw_text: '@_user_1你好 再见' }, { overrides })), '你好 再见', 'words that touch it stay')
})

t.test('a message_id passes unchanged when one field identifies, and is a hash where several do', async (t) => {
  t.match(translate({ raw_text: 'x', message_id: 'om_1' }), { messageId: 'om_1', originalId: null })
  t.match(translate({ raw_text: 'x', message_id: 42 }), { messageId: '42' })
  const telegram = (more: object) => translate({ raw_text: 'x', account_hint: 'a', chat_id: 'b', ...more }, { preset: 'telegram' }).messageId
  t.equal(telegram({ message_id: '7' }), `m_${digest(['a', 'b', '7'])}`)
  t.not(telegram({ message_id: '7' }), telegram({ message_id: '7', chat_id: 'c' }), 'unique only inside a chat')
  t.not(telegram({ account_hint: 'ab', chat_id: '' }), telegram({ account_hint: 'a', chat_id: 'b' }), 'parts do not run into each other')
})

t.test('without an id: sender, time and words identify; without a time it is a new message, counted', async (t) => {
  const push = (more: object) => translate({ message_id: '', sender_id: 's', raw_text: 'x', ...more })
  t.equal(push({ create_time_ms: NOW }).messageId, push({ create_time_ms: NOW }).messageId)
  t.not(push({ create_time_ms: NOW }).messageId, push({ create_time_ms: NOW + 1 }).messageId)
  t.not(push({ create_time_ms: NOW }).messageId, push({ create_time_ms: NOW, sender_id: 'z' }).messageId)
  t.match(push({ create_time_ms: 0 }), { messageId: 'm_fresh', deviations: ['identity_missing'] })
  t.match(push({ message_id: 2 ** 60, create_time_ms: 0 }), { messageId: 'm_fresh' }, 'a number that lost digits is no id')
})

t.test('an id that is too long or not well formed becomes a hash', async (t) => {
  t.match(translate({ raw_text: 'x', message_id: 'i'.repeat(1_025) }).messageId, /^m_.{32}$/)
  t.match(translate({ raw_text: 'x', message_id: 'a\ud800' }).messageId, /^m_.{32}$/)
})

t.test('created_at is the target\'s time when it can be true, else takeover', async (t) => {
  const at = (time: unknown) => { const push = translate({ raw_text: 'x', create_time_ms: time }); return push.kind === 'message' ? push.createdAt : null }
  t.equal(at(NOW - 1_000), NOW - 1_000)
  t.equal(at(NOW + 300_000), NOW + 300_000)
  t.equal(at(NOW + 300_001), NOW)
  t.equal(at(Date.UTC(2001, 0, 1)), NOW)
  t.equal(at(0), NOW)
  t.equal(at('soon'), NOW)
  t.equal(at(undefined), NOW)
})

t.test('what is not forwarded, and why', async (t) => {
  const reason = (payload: object, more: Parameters<typeof translate>[1] = {}) => { const push = translate({ raw_text: 'x', ...payload }, more); return push.kind === 'not_forwarded' ? push.reason : push.kind }
  t.equal(reason({ event_kind: 'im.message.recalled' }), 'event_kind')
  t.equal(reason({ event_kind: undefined }), 'event_kind')
  const overrides = { userMessageWhen: { message_type: [0, 1] } }
  t.equal(reason({ message_type: 2 }, { overrides }), 'not_user_message')
  t.equal(reason({ message_type: 1 }, { overrides }), 'message')
  t.equal(reason({}, { overrides }), 'message', 'a field that is absent does not decide')
  t.equal(reason({ chat_type: 'group' }, { rules: { accept: 'private' } }), 'not_accepted')
  t.equal(reason({}, { rules: { accept: 'private' } }), 'message', 'no sign of a group is private')
  t.equal(reason({ chat_id: '7' }, { rules: { accept: ['8'] } }), 'not_accepted')
  t.equal(reason({ sender_id: '8' }, { rules: { accept: ['8'] } }), 'message')
})

t.test('commands cross only from where they are allowed', async (t) => {
  const kind = (raw_text: string, chat_type: string, commands: InboundRules['commands']) => translate({ raw_text, chat_type }, { rules: { commands } }).kind
  for (const words of ['/stop', '@{approval:1} yes', '  /stop']) {
    t.equal(kind(words, 'private', 'private'), 'message')
    t.equal(kind(words, 'group', 'private'), 'not_forwarded')
    t.equal(kind(words, 'private', 'none'), 'not_forwarded')
    t.equal(kind(words, 'group', 'all'), 'message')
  }
  t.equal(kind('not /a command', 'group', 'private'), 'message')
})

t.test('both dialects of file lists, null items and missing references', async (t) => {
  const files = (payload: object) => { const push = translate({ raw_text: 'x', ...payload }); return push.kind === 'message' ? push.body.files : [] }
  t.match(files({ files: [{ type: 'audio', file_ref: 'f1', mime_type: 'audio/ogg', byte_size: 7 }] }), [{ type: 'audio', sourceUrl: '/files/refs/f1', mimeType: 'audio/ogg', byteSize: 7, state: 'preparing', ref: null }])
  t.match(files({ media: [null, { media_type: 'image', media_ref: 'm1', content_type: '' }, { type: 'sticker', media_ref: 'm2' }, {}] }), [{ type: 'image', sourceUrl: '/media/refs/m1', mimeType: null }, { type: 'file', sourceUrl: '/media/refs/m2' }])
  t.equal(files({ media_refs: [{ media_ref: 'm3' }] }).length, 1)
  t.equal(files({ media: Array.from({ length: 3_000 }, (_, i) => ({ type: 'image', media_ref: `m${i}` })) }).length, 100, 'bounded')
})

t.test('a lone surrogate in the words is replaced, and counted', async (t) => {
  const push = translate({ raw_text: 'a\ud800b' })
  t.equal(textOf(push), 'a\ufffdb')
  t.ok(push.deviations.includes('lone_surrogate'))
})

t.test('generic takes tool and reply_ref from the push, else the Card\'s only text tool, else nothing', async (t) => {
  const tools = new Map([['send', { required: ['text', 'connector_channel_id'], declared: [] }], ['reply', { required: ['reply_ref', 'text'], declared: [] }]])
  const target = (payload: object, from = tools) => {
    const push = translatePush({ event_kind: 'im.message.received', message_id: '1', raw_text: 'x', ...payload }, { preset: presets.get('generic')!, rules: { accept: 'all', commands: 'all', senderLine: 'off' }, tools: from, now: NOW, files: true, freshId: () => '' })
    return push.kind === 'message' ? push.target : null
  }
  t.match(target({ reply: { tool_id: 'reply', reply_ref: 'r1' } }), { tool: 'reply', arguments: { reply_ref: 'r1' }, perMessage: true })
  t.match(target({ reply: { tool_id: 'send' } }), { tool: 'send', arguments: {}, perMessage: false })
  t.match(target({ reply: { tool_id: 'not_in_the_card' } }), { tool: 'send' })
  t.match(target({}), { tool: 'send' })
  t.equal(target({}, new Map([...tools, ['send2', { required: ['text'], declared: [] }]])), null, 'two candidates: no guess')
})

t.test('translation is total, and only v2 fields cross (v2 §3, §5)', async (t) => {
  const secret = fc.constantFrom('session_id', 'user_connector_id', 'user_id', 'connector_id', 'role', 'context_token', 'raw_message', 'reply_ref', '__proto__', 'constructor')
  const payloads = fc.dictionary(fc.oneof(fc.constantFrom('raw_text', 'text', 'message_id', 'event_kind', 'create_time_ms', 'media', 'files', 'reply', 'chat_id', 'sender_id', 'chat_type'), secret, fc.string()), fc.anything(), { maxKeys: 12 })
  fc.assert(fc.property(payloads, fc.constantFrom('generic', 'telegram'), (payload, preset) => {
    const push = translatePush(payload, { preset: presets.get(preset)!, rules: { accept: 'all', commands: 'private', senderLine: 'groups' }, tools: new Map(), now: NOW, files: true, freshId: () => 'fresh' })
    if (push.kind !== 'message') return
    const crossed = messagePayload({ messageId: push.messageId, text: push.body.text, createdAt: push.createdAt })
    t.strictSame(Object.keys(crossed).sort(), ['created_at', 'message_id', 'text'])
    if (push.body.text.trim() === '' || push.messageId === '') throw new Error('not a valid chat.message')
  }), { numRuns: 500 })
})
