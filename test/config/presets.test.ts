import { readFileSync } from 'node:fs'
import t from 'tap'
import { parseConfig } from '../../src/config/load.js'
import { loadPresets } from '../../src/config/package-files.js'
import { choosePreset } from '../../src/config/preset-file.js'
import { decodePacket } from '../../src/protocol/packet.js'
import { toolOutcome } from '../../src/translate/tool-outcome.js'
import type { OutcomeClass, Preset } from '../../src/translate/preset.js'

const presets = loadPresets()
const named = (name: string): Preset => choosePreset(presets, null, { preset: name, presetOverrides: {} })
const NO_PROOF = { sentWhen: {}, field: null, recipient: null }

/** The class of an error with this text. */
function classOf(preset: string, message: string, code = 'tool_invoke_failed'): OutcomeClass {
  const packet = decodePacket(JSON.stringify({ schema: 'xagent.connector.packet/v1', packet_id: 'p', type: 'tool.invoke.ack', error: { code, message } }))
  if (!packet.ok) throw new Error('the fixture is no packet')
  return toolOutcome(packet.value, NO_PROOF, named(preset)).class
}

t.test('the preset is the named one, else the one for the Card, else generic', async (t) => {
  const chosen = (preset: string, cardId: string | null): string => choosePreset(presets, cardId, { preset, presetOverrides: {} }).name
  t.equal(chosen('auto', 'im.telegram'), 'telegram')
  t.equal(chosen('auto', 'im.wechat'), 'wechat')
  t.equal(chosen('auto', 'im.feishu'), 'feishu')
  t.equal(chosen('auto', 'im.unheard-of'), 'generic')
  t.equal(chosen('auto', null), 'generic')
  t.equal(chosen('generic', 'im.telegram'), 'generic')
  t.equal(chosen('telegram', 'im.unheard-of'), 'telegram')
  t.throws(() => chosen('no-such-preset', null), { code: 'config_invalid' })
})

const OVERRIDING = `xagent: { insecure: true }
connectors:
  - { name: a, url: "http://h", identity: [message_id], text_limit: { max: 100, unit: bytes }, fields: { time: [sent_at] } }
`

t.test('keys of a preset inside a connector go over it, the other keys stay', async (t) => {
  const [connector] = parseConfig('gw.yaml', OVERRIDING, {}).config.connectors
  if (connector === undefined) throw new Error('there is one')
  const preset = choosePreset(presets, 'im.telegram', connector)
  const telegram = named('telegram')
  t.match(preset, { identity: ['message_id'], textLimit: { max: 100, unit: 'bytes' } })
  t.strictSame(preset.fields, { ...telegram.fields, time: ['sent_at'] })
  t.strictSame(preset.reply, telegram.reply)
  t.strictSame(named('telegram').identity, ['account_hint', 'chat_id', 'message_id'])
})

t.test('telegram: identity, time, groups, one conversation, and what happens while nobody reads', async (t) => {
  t.match(named('telegram'), {
    cardIds: ['im.telegram'], identity: ['account_hint', 'chat_id', 'message_id'], conversation: [], groupWhen: [{ chat_type: ['group', 'supergroup', 'channel'] }],
    wrapperText: true, whileClosed: 'lost', pauseReading: 'safe', textLimit: { max: 4096, unit: 'utf16' }, inferReply: false,
  })
  t.strictSame(named('telegram').fields.time, ['create_time_ms', 'received_at'])
})

t.test('telegram: a reply is proven by status, message id and the chat it names', async (t) => {
  const [rule] = named('telegram').reply
  t.match(rule, {
    tool: 'telegram_message_send', arguments: { text: '{text}' }, inDoubt: 'dead_letter',
    result: { sentWhen: { status: ['sent'] }, proof: 'message_id', recipient: { field: 'chat_id', equals: 'chat_id' } },
  })
  t.equal(named('telegram').defaultTarget?.tool, 'telegram_message_send')
})

t.test('wechat: an answer names recipient and token of the push that is answered, or is not sent', async (t) => {
  const { reply, defaultTarget, targetTtlMs, textLimit, typing } = named('wechat')
  t.equal(reply.length, 1)
  t.match(reply[0], {
    tool: 'wechat_message_send', arguments: { text: '{text}', recipient_ref: '{from}', context_token: '{context_token}' }, inDoubt: 'dead_letter', lastChatOnly: false,
    result: { sentWhen: { status: ['sent'] }, proof: null, recipient: { field: 'recipient_ref', equals: 'from' } },
  })
  t.match(typing, { tool: 'wechat_typing', arguments: { to: '{from}', context_token: '{context_token}', typing: '{typing}' } })
  t.strictSame({ defaultTarget, targetTtlMs, textLimit }, { defaultTarget: null, targetTtlMs: 86_400_000, textLimit: { max: 2000, unit: 'code_points' } })
})

t.test('wechat: identity, conversations, user messages, and what happens while nobody reads', async (t) => {
  t.match(named('wechat'), {
    cardIds: ['im.wechat'], identity: ['message_id'], conversation: [['group_id'], ['from', 'sender_id']], groupWhen: [{ group_id: ['*'] }], wrapperText: true,
    userMessageWhen: { message_type: [0, 1], message_state: [0, 2], 'raw_message.delete_time_ms': [0] },
    hiddenTools: ['wechat_typing'], resultFields: ['status', 'message_id', 'sent_at'], whileClosed: 'queued', pauseReading: 'safe', descriptorCheckMs: 60_000, inferReply: false,
  })
})

t.test('feishu: a reply by reference, else to the private chat that wrote last', async (t) => {
  const { reply, defaultTarget, targetTtlMs, textLimit, typing } = named('feishu')
  t.match(reply, [
    { when: {}, tool: 'feishu_message_reply', arguments: { text: '{text}', reply_ref: '{reply.reply_ref}' }, lastChatOnly: false, result: { proof: 'message_id', recipient: null } },
    { when: { chat_type: ['p2p'] }, tool: 'feishu_message_send', arguments: { text: '{text}' }, lastChatOnly: true, result: { proof: 'message_id', recipient: null } },
  ])
  t.equal(reply.length, 2)
  t.strictSame({ defaultTarget, targetTtlMs, textLimit, typing }, { defaultTarget: null, targetTtlMs: 7 * 86_400_000, textLimit: { max: 20_000, unit: 'code_points' }, typing: null })
})

t.test('feishu: identity, conversations, order, and what happens while nobody reads', async (t) => {
  t.match(named('feishu'), {
    cardIds: ['im.feishu'], identity: ['message_id'], conversation: [['chat_id']], groupWhen: [{ chat_type: ['group', 'topic_group'] }, { 'reply.reply_ref': ['*'] }],
    wrapperText: true, stripLeading: ['@_user_'], reorderWindowMs: 250, hiddenTools: ['feishu_message_reply', 'feishu_message_reply_image'],
    resultFields: ['message_id', 'message_type'], whileClosed: 'lost', pauseReading: 'lossy', descriptorCheckMs: null, inferReply: false,
  })
})

t.test('no preset lets an agent see where a message went', async (t) => {
  for (const preset of presets.values()) {
    for (const field of ['chat_id', 'recipient_ref', 'context_token', 'reply_ref']) t.notOk(preset.resultFields.includes(field), `${preset.name}: ${field}`)
  }
})

t.test('generic: the tool that the push names, with its reply_ref where it has one', async (t) => {
  const { reply, inferReply, identity, conversation, wrapperText, whileClosed, pauseReading } = named('generic')
  t.strictSame(reply.map((rule) => [rule.tool, rule.arguments]), [
    ['{reply.tool_id}', { text: '{text}', reply_ref: '{reply.reply_ref}' }],
    ['{reply.tool_id}', { text: '{text}' }],
  ])
  t.strictSame({ inferReply, identity, conversation, wrapperText, whileClosed, pauseReading }, {
    inferReply: true, identity: ['message_id'], conversation: [['chat_id', 'sender_id']], wrapperText: false, whileClosed: 'unknown', pauseReading: 'lossy',
  })
})

const DIAL = 'Post "https://platform.example/bot1:AAinvented/sendMessage": dial tcp 192.0.2.1:443:'
const TELEGRAM: readonly (readonly [message: string, expected: OutcomeClass])[] = [
  ['message text required', 'permanent'], ['unknown tool_id: x', 'permanent'], ['unsupported media type', 'permanent'], ['media_ref not found or expired', 'permanent'],
  ['connector_card_id mismatch', 'permanent'],
  ...[400, 403, 404, 413].map((status) => [`Telegram API HTTP ${status}`, 'permanent'] as const),
  ...[400, 403].map((code) => [`Telegram API error ${code}: Bad Request: chat not found`, 'permanent'] as const),
  ['Telegram API HTTP 401', 'auth'], ['Telegram API error 401: Unauthorized', 'auth'],
  ['Telegram API HTTP 429', 'temporary'], ['Telegram API error 429: Too Many Requests: retry after 3', 'temporary'],
  [`${DIAL} connect: connection refused`, 'temporary'],
  [`${DIAL} context deadline exceeded`, 'in_doubt'], ['read tcp a->b: read: connection reset by peer', 'in_doubt'], ['unexpected EOF', 'in_doubt'],
  ['unexpected end of JSON input', 'in_doubt'], ["invalid character '<' looking for beginning of value", 'in_doubt'],
  ...[500, 502, 503, 504].map((status) => [`Telegram API HTTP ${status}`, 'in_doubt'] as const),
  ['something never seen before', 'in_doubt'], ['', 'in_doubt'],
]

t.test('telegram: the outcome of every kind of error text', async (t) => {
  for (const [message, expected] of TELEGRAM) t.equal(classOf('telegram', message), expected, message)
  t.equal(classOf('telegram', 'channel is not bound to an authenticated Telegram chat', 'connection_not_authenticated'), 'permanent')
})

/** How both say that nothing is known about the effect. */
const UNKNOWN: readonly (readonly [message: string, expected: OutcomeClass])[] = [
  [`${DIAL} context deadline exceeded`, 'in_doubt'], ['read tcp a->b: read: connection reset by peer', 'in_doubt'], ['unexpected EOF', 'in_doubt'],
  ['unexpected end of JSON input', 'in_doubt'], ["invalid character '<' looking for beginning of value", 'in_doubt'], ['server time out error', 'in_doubt'],
  ['something never seen before', 'in_doubt'], ['', 'in_doubt'], [`${DIAL} connect: connection refused`, 'temporary'],
]
const SEND = '发送微信消息失败:'
const WECHAT: readonly (readonly [message: string, expected: OutcomeClass])[] = [
  ...UNKNOWN,
  ['message text required', 'permanent'], ['media_ref required', 'permanent'], ['unknown tool_id: x', 'permanent'], ['unsupported media type', 'permanent'],
  ['media_ref recipient mismatch', 'permanent'], ['media_ref not found or expired', 'permanent'],
  ...[400, 401, 403, 404, 413].map((status) => [`${SEND} WeChat API HTTP ${status}`, 'permanent'] as const),
  [`${SEND} WeChat API HTTP 429`, 'temporary'],
  ...[500, 502, 503, 504].map((status) => [`${SEND} WeChat API HTTP ${status}`, 'in_doubt'] as const),
  [`${SEND} sendmessage ret=-14 errmsg=`, 'permanent'], [`${SEND} sendmessage ret=-14 errmsg=session timeout`, 'permanent'],
  [`${SEND} sendmessage ret=-141 errmsg=`, 'in_doubt'], [`${SEND} sendmessage ret=-1 errmsg=unsupported thing required`, 'in_doubt'], [`${SEND} sendmessage ret=-2 errmsg=`, 'in_doubt'],
]

t.test('wechat: the outcome of every kind of error text', async (t) => {
  for (const [message, expected] of WECHAT) t.equal(classOf('wechat', message), expected, message)
  t.equal(classOf('wechat', 'channel is not bound to an authenticated target user', 'connection_not_authenticated'), 'permanent')
  t.equal(classOf('wechat', 'channel is not bound to a valid connection', 'connection_not_found'), 'permanent')
})

const FEISHU: readonly (readonly [message: string, expected: OutcomeClass])[] = [
  ...UNKNOWN,
  ['text required', 'permanent'], ['reply_ref required', 'permanent'], ['media_ref required', 'permanent'], ['unsupported tool: x', 'permanent'], ['unknown tool_id: x', 'permanent'],
  ['reply_ref channel mismatch', 'permanent'], ['reply_ref not found or expired', 'permanent'], ['feishu default chat is not bound', 'permanent'],
  ['飞书发送消息失败: code=230001 msg=invented failure', 'permanent'], ['飞书发送消息失败: code=2300011 msg=invented failure', 'in_doubt'],
  ...[99991400, 230020, 99991661, 99991663, 99991668].map((code) => [`飞书发送消息失败: code=${code} msg=invented failure`, 'temporary'] as const),
  ['飞书发送消息失败: code=2300201 msg=invented failure', 'in_doubt'], ['飞书发送消息失败: code=230002 msg=text required', 'in_doubt'],
  ['msg:invented failure,code:10003', 'temporary'], ['msg:app secret invalid,code:10014', 'auth'], ['msg:app_secret is wrong,code:10014', 'auth'],
  ['response content-type not json, response: StatusCode: 200, Header:map[X:[a,code:1]], Content-Type: text/html, Body: app secret required', 'in_doubt'],
]

t.test('feishu: the outcome of every kind of error text', async (t) => {
  for (const [message, expected] of FEISHU) t.equal(classOf('feishu', message), expected, message)
  t.equal(classOf('feishu', 'channel is not bound to an authenticated Feishu chat', 'connection_not_authenticated'), 'permanent')
  t.equal(classOf('feishu', 'channel is not bound to a valid connection', 'connection_not_found'), 'permanent')
})

t.test('generic: certain only where the text says so', async (t) => {
  const rows: readonly (readonly [string, OutcomeClass])[] = [
    ...[400, 403, 404, 413].map((status) => [`Chat API HTTP ${status}`, 'permanent'] as const),
    ['Chat API HTTP 401', 'auth'], ['Chat API HTTP 429', 'temporary'], [`${DIAL} connect: connection refused`, 'temporary'], ['Chat API HTTP 503', 'in_doubt'],
    ['text required', 'permanent'], ['unknown tool_id: x', 'permanent'], ['unsupported tool: x', 'permanent'], ['media_ref not found or expired', 'permanent'],
    ['context deadline exceeded', 'in_doubt'], ['connection reset by peer', 'in_doubt'], ['sendmessage ret=-2', 'in_doubt'],
  ]
  for (const [message, expected] of rows) t.equal(classOf('generic', message), expected, message)
})

t.test('a token or a text that happens to hold digits of a status decides nothing', async (t) => {
  t.equal(classOf('telegram', 'Post "https://platform.example/bot429:HTTP401error403/sendMessage": EOF'), 'in_doubt')
  t.equal(classOf('telegram', 'Telegram API HTTP 500: limit 429, error 403'), 'in_doubt')
})

/** Outcome classes of the recorded tool answers, by case. */
const RECORDED: ReadonlyMap<string, OutcomeClass> = new Map([
  ['tool on a channel that is not bound', 'permanent'], ['tool on a channel that is not open', 'permanent'],
  ['tool: text sent', 'sent'], ['tool: text missing', 'permanent'], ['tool: unknown tool', 'permanent'], ['tool: unknown media_ref', 'permanent'],
  ['tool: platform answers HTTP 400', 'permanent'], ['tool: platform answers HTTP 401', 'auth'], ['tool: platform answers HTTP 403', 'permanent'],
  ['tool: platform answers HTTP 404', 'permanent'], ['tool: platform answers HTTP 413', 'permanent'], ['tool: platform answers HTTP 429', 'temporary'],
  ['tool: platform answers HTTP 500', 'in_doubt'], ['tool: platform answers HTTP 502', 'in_doubt'], ['tool: platform answers 200 with ok:false 429', 'temporary'],
  ['tool: connection reset before the effect', 'in_doubt'], ['tool: connection reset after the effect', 'in_doubt'], ['tool: answer is not JSON', 'in_doubt'],
  ['tool: platform answers too late', 'in_doubt'],
])

t.test('every recorded tool answer of the Telegram connector has its class', async (t) => {
  const lines = readFileSync(new URL('../fixtures/packets/telegram.jsonl', import.meta.url), 'utf8').trim().split('\n').map((line) => JSON.parse(line) as { case: string; packet?: unknown })
  const answers = lines.filter((line) => line.case.startsWith('tool'))
  t.strictSame(answers.map((line) => line.case), [...RECORDED.keys()])
  const [rule] = named('telegram').reply
  for (const line of answers) {
    const packet = decodePacket(JSON.stringify(line.packet))
    if (!packet.ok || rule === undefined) throw new Error(`${line.case}: not a packet`)
    const proof = { sentWhen: rule.result.sentWhen, field: rule.result.proof, recipient: { field: 'chat_id', value: '880000042' } }
    t.equal(toolOutcome(packet.value, proof, named('telegram')).class, RECORDED.get(line.case), line.case)
  }
})
