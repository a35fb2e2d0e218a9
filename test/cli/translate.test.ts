/** The command line `translate`, as a process of its own: recorded packets in, golden packets out. */
import t from 'tap'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isObject, type JsonObject } from '../../src/protocol/packet.js'
import { CONNECTORS, recordedBody, recordedCases, recordedPacket, type Connector } from '../legacy/recorded.js'
import { goldenFile, goldenOutcomes, goldenPairs } from '../translate/golden.js'

t.testdir({})

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const LOADER = import.meta.resolve('tsx')
const recordings = (connector: Connector): string => readFileSync(new URL(`../fixtures/packets/${connector}.jsonl`, import.meta.url), 'utf8')

interface Explained {
  readonly line: number
  readonly packets: readonly JsonObject[]
  readonly explain: JsonObject
}

/** Runs it with the flags on this input. */
async function translate(flags: readonly string[], input: string | Buffer, cwd = t.testdirName): Promise<{ code: number | null; out: string[]; err: string[] }> {
  const child = spawn(process.execPath, ['--import', LOADER, MAIN, 'translate', ...flags], { cwd, env: { PATH: process.env['PATH'] ?? '' }, stdio: 'pipe' })
  const said = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => { said.out += text })
  child.stderr.setEncoding('utf8').on('data', (text: string) => { said.err += text })
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const [code] = (await once(child, 'close')) as [number | null]
  const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '')
  return { code, out: lines(said.out), err: lines(said.err) }
}

const packet = (type: string, payload: object, more: object = {}): string =>
  JSON.stringify({ schema: 'xagent.connector.packet/v1', packet_id: 'pkt_in', connector_channel_id: 'cch_1', type, time: 1_796_076_741_000, payload, ...more })
const lineOf = (connector: Connector, name: string): string => recordings(connector).split('\n').find((line) => line.includes(`"case":"${name}"`)) ?? ''
const parsed = (lines: readonly string[]): Explained[] => lines.map((line) => JSON.parse(line) as Explained)

/** Every recorded line of a connector, explained. */
const explained = Object.fromEntries(CONNECTORS.map((connector) => [connector, translate(['--explain'], recordings(connector))])) as Record<Connector, ReturnType<typeof translate>>

for (const connector of CONNECTORS) {
  t.test(`${connector}: every recorded line, compared with the golden files`, async (t) => {
    const { code, out } = await explained[connector]
    t.equal(code, 0)
    const lines = parsed(out)
    t.equal(lines.length, recordedCases(connector).length, 'one object a line')
    const byCase = new Map(recordedCases(connector).map((name, at) => [name, lines[at]]))
    for (const pair of goldenPairs(connector)) {
      const [first] = byCase.get(pair.case)?.packets ?? []
      t.strictSame(first?.['payload'], pair.v2.payload, pair.case)
      const { answer, outcome } = byCase.get(pair.case)?.explain ?? {}
      t.equal(isObject(outcome) ? (outcome['reason'] ?? null) : undefined, pair.v2.reason ?? null)
      t.equal(isObject(answer) ? answer['tool'] : null, pair.reply?.tool ?? null, `${pair.case}: the tool of an answer`)
      t.strictSame(isObject(answer) && isObject(answer['arguments']) ? Object.keys(answer['arguments']).sort() : null, pair.reply === null ? null : Object.keys(pair.reply.arguments).sort())
    }
    for (const [name, wanted] of Object.entries(goldenOutcomes(connector))) t.match(byCase.get(name)?.explain['outcome'], { class: wanted }, name)
  })
}

t.test('without --explain: packets alone, one a line, and on standard error what becomes nothing', async (t) => {
  const { code, out, err } = await translate([], recordings('wechat'))
  t.equal(code, 0)
  const packets = out.map((line) => JSON.parse(line) as JsonObject)
  const texts = packets.filter(({ type }) => type === 'chat.message').map(({ payload }) => payload)
  t.strictSame(texts, goldenPairs('wechat').flatMap(({ v2 }) => v2.payload ?? []))
  const at = (name: string): number => recordedCases('wechat').indexOf(name) + 1
  t.ok(err.some((line) => line.startsWith(`line ${at('push: the bot\'s own message')}: message.push becomes nothing: not forwarded, not_user_message`)))
  t.ok(err.some((line) => line.startsWith(`line ${at('push: media that could not be fetched')}: `) && line.includes('empty_message')))
  t.ok(err.includes(`line ${at('tool: platform answers HTTP 500')}: tool.invoke.ack: outcome in_doubt, delivery_in_doubt`))
  for (const secret of ['ctx-u_', 'sess-', 'aeskey', 'media_', '@im.wechat', 'xagent.im.v1', 'im-connector-reply', 'auth_rYgssJn8zMbSaBfV', 'conn_im_wechat']) t.notOk(out.join('\n').includes(secret), secret)
})

t.test('Card, sign-in and Descriptors in their northbound form', async (t) => {
  const cards = goldenFile<Record<string, JsonObject>>('cards')
  const transcripts = goldenFile<{ connector: Connector; case: string; as: string; v2: JsonObject }[]>('sign-in')
  for (const connector of ['wechat', 'feishu'] as const) {
    const { out } = await explained[connector]
    const lines = parsed(out)
    const of = (name: string): JsonObject | undefined => lines[recordedCases(connector).indexOf(name)]?.packets[0]
    const { connector: said, build: _build, tools, ...card } = of('card') ?? {}
    const { connector: golden, build: _golden, tools: goldenTools, ...wanted } = cards[connector] ?? {}
    t.strictSame({ ...card, said: { ...(said as object), version: '' } }, { ...wanted, said: { ...(golden as object), version: '' } })
    for (const tool of goldenTools as JsonObject[]) t.strictSame((tools as JsonObject[]).find((one) => one['tool_id'] === tool['tool_id']), tool)
    for (const transcript of transcripts.filter((one) => one.connector === connector && (one.as === 'sign-in' || one.as === 'descriptor'))) {
      const payload = asGolden(of(transcript.case)?.['payload'] as JsonObject, recordedPacket(connector, transcript.case).channelId ?? '')
      t.match(payload, withoutTools(transcript.v2), transcript.case)
    }
  }
})

/** The command adopts the connector's channel id and counts sessions; the golden files have names of their own for them. */
function asGolden(payload: JsonObject, channelId: string): JsonObject {
  return JSON.parse(JSON.stringify(payload).replaceAll(`"${channelId}"`, '"cch_north"').replace(/"auth_\d+"/g, '"auth_gateway"')) as JsonObject
}

/** Which tools a Descriptor lists is its Card's affair, compared above. */
function withoutTools(payload: JsonObject): JsonObject {
  const { connection_descriptor: descriptor, ...rest } = payload
  if (!isObject(descriptor)) return rest
  const { tools: _tools, ...kept } = descriptor
  return { ...rest, connection_descriptor: kept }
}

t.test('--explain names every secret field that is left out, and no value of one', async (t) => {
  const input = [lineOf('wechat', 'push: image'), lineOf('feishu', 'push: group image'), lineOf('telegram', 'push: image'), packet('message.push', { bot_token: '7:AAhidden', provider: 'telegram', message_id: '1', raw_text: 'hi' })].join('\n')
  const { code, out } = await translate(['--explain'], input)
  t.equal(code, 0)
  const secrets = parsed(out).map(({ explain }) => (explain['left_out'] as JsonObject[]).filter((one) => one['secret'] === true).map((one) => one['field']))
  t.strictSame(secrets, [
    [
      'context_token', 'media[].download_url', 'media[].media_ref', 'raw_message.context_token', 'raw_message.item_list[].image_item.aeskey',
      'raw_message.item_list[].image_item.media.aes_key', 'raw_message.item_list[].image_item.media.encrypt_query_param', 'raw_message.item_list[].image_item.media.encrypt_type', 'raw_message.session_id', 'session_id',
    ],
    ['media[].download_url', 'media[].media_ref', 'reply.reply_ref', 'reply_ref'],
    ['media[].download_url', 'media[].media_ref', 'reply_token'],
    ['bot_token'],
  ])
  t.notMatch(out.map((line) => JSON.stringify((JSON.parse(line) as Explained).explain)).join('\n'), /ctx-u_|media_dv00|tgmedia_|reply_[A-Za-z0-9-]{20}|hidden|880000042|ou_sam|@im\.wechat/)
  t.match(parsed(out)[0]?.explain['answer'], { arguments: { recipient_ref: 'the push\'s from', context_token: 'the push\'s context_token' }, file: { upload_fields: { reply_token: 'the push\'s context_token' } } })
})

t.test('a final becomes the steps that answer the latest push of its channel, and their answers its ack', async (t) => {
  const push = recordedPacket('wechat', 'push: text')
  const more = { connector_channel_id: push.channelId }
  const final = packet('chat.message', { message_id: 'a1', text: 'The answer.', files: [{ type: 'file', file_ref: 'f1', filename: 'plan.pdf', byte_size: 17 }] }, more)
  const sent = packet('tool.invoke.ack', { tool_id: 'wechat_message_send', result: { status: 'sent', recipient_ref: 'u_alice@im.wechat' } }, more)
  const elsewhere = packet('chat.message', { message_id: 'a2', text: 'hello' }, { connector_channel_id: 'cch_other' })
  const { code, out, err } = await translate([], [lineOf('wechat', 'push: text'), final, sent, sent, elsewhere].join('\n'))
  t.equal(code, 0)
  const target = { recipient_ref: 'u_alice@im.wechat', context_token: push.payload['context_token'], connector_channel_id: push.channelId }
  t.strictSame(out.slice(1).map((line) => { const { type, payload } = JSON.parse(line) as JsonObject; return { type, payload } }), [
    { type: 'tool.invoke', payload: { tool_id: 'wechat_message_send', arguments: { ...target, text: 'The answer.' }, context: { tool_call_id: `${push.channelId}:a1:1` } } },
    { type: 'tool.invoke', payload: { tool_id: 'wechat_message_send_media', arguments: { ...target, media_ref: 'upload_1' }, context: { tool_call_id: `${push.channelId}:a1:2` } } },
    { type: 'chat.message.ack', payload: { message_id: 'a1', status: 'accepted' } },
    { type: 'chat.message.ack', payload: { message_id: 'a2', status: 'rejected', code: 'no_reply_target', retryable: false } },
  ])
  t.ok(err.includes('line 3: tool.invoke.ack: sent, step 1 of 2; the ack follows the last one'))
})

t.test('an answer that went to somebody else is in doubt; a final that is none is refused', async (t) => {
  const channel = { connector_channel_id: recordedPacket('wechat', 'push: text').channelId }
  const input = [
    lineOf('wechat', 'push: text'), packet('chat.message', { message_id: 'a1', text: 'hi' }, channel), lineOf('wechat', 'tool: text sent'),
    packet('chat.message', { message_id: 'a2', text: 'hi', role: 'assistant' }, channel), packet('chat.message', { text: 'hi' }, channel),
  ]
  const { out } = await translate([], input.join('\n'))
  const packets = out.map((line) => JSON.parse(line) as { type: string; payload: JsonObject; error?: JsonObject })
  t.match(packets[2], { type: 'chat.message.ack', reply_to: 'pkt_in', payload: { message_id: 'a1', code: 'delivery_in_doubt', retryable: false } })
  t.match(packets[3], { type: 'chat.message.ack', payload: { message_id: 'a2', code: 'invalid_packet', retryable: false } })
  t.match(packets[4], { type: 'error', error: { code: 'invalid_packet' } })
})

t.test('--to and --card: whom a final answers, and what tools there are', async (t) => {
  const folder = t.testdir({
    'push.jsonl': lineOf('feishu', 'push: group, bot mentioned'), 'card.json': JSON.stringify(recordedBody('feishu', 'card'), null, 2), 'other.json': '{"status":"ok"}',
  })
  const [good, noCard, noPush] = await Promise.all([
    translate(['--to', 'push.jsonl', '--card', 'card.json'], packet('chat.message', { message_id: 'a1', text: 'Fine.' }), folder),
    translate(['--card', 'other.json'], '', folder), translate(['--to', 'card.json'], '', folder),
  ])
  t.match(JSON.parse(good.out[0] ?? ''), { type: 'tool.invoke', payload: { tool_id: 'feishu_message_reply', arguments: { text: 'Fine.', reply_ref: recordedPacket('feishu', 'push: group, bot mentioned').payload['reply_ref'] } } })
  t.strictSame([noCard.code, noPush.code], [2, 2])
  t.match(noCard.err.join(), /--card other\.json: must hold one connector Card/)
  t.match(noPush.err.join(), /--to card\.json: must hold one message\.push packet/)
})

t.test('the dialect: by Card, by provider, by name, else generic', async (t) => {
  const push = { profile: 'xagent.im.v1', event_kind: 'im.message.received', message_id: '7', chat_id: 'c', account_hint: 'b', sender_id: 's', text: 'wrapped', raw_text: 'hi' }
  const presets = async (flags: readonly string[], ...input: string[]): Promise<unknown[]> => parsed((await translate(['--explain', ...flags], input.join('\n'))).out).map(({ explain }) => explain['preset'])
  const unknownCard = JSON.stringify({ ...recordedBody('telegram', 'card'), connector_card_id: 'im.other' })
  const of = (provider: string): string => packet('message.push', { ...push, provider })
  t.strictSame(await presets([], of('somebody'), of('telegram'), of('wechat')), ['generic', 'telegram', 'wechat'])
  t.strictSame(await presets([], unknownCard, of('telegram')), ['generic', 'generic'], 'a Card counts before a provider')
  t.strictSame(await presets(['--preset', 'feishu'], lineOf('telegram', 'card'), of('telegram')), ['feishu', 'feishu'])
})

t.test('lines that are no packet: named with their number and what would be right; the others go on, and the exit code is 1', async (t) => {
  const good = lineOf('telegram', 'push: text')
  const { code, out, err } = await translate([], Buffer.concat([
    Buffer.from(`${good}\nnot json\n\n{"type":"message.push"}\r\n[1]\n`), Buffer.from([0xff, 0xfe, 0x0a]), Buffer.from(`{"deep":${'['.repeat(5_000)}${']'.repeat(5_000)}}\n{"schema":"xagent.connector/v1"}\n{"case":"x","body":{}}\n${good}`),
  ]))
  t.equal(code, 1)
  t.equal(out.length, 2)
  t.strictSame(err.map((line) => line.split(';')[0]), [
    'line 2: not valid JSON', 'line 4: schema must be "xagent.connector.packet/v1"', 'line 5: not one JSON object', 'line 6: not UTF-8', 'line 7: nests too deep',
    'line 8: a Card without connector_card_id', 'line 9: a body that is neither a Card nor a health answer',
  ])
  t.match(err[0], /\{"schema":"xagent\.connector\.packet\/v1","packet_id":…/)
})

t.test('a line over 16 MiB is refused without being held, one below it passes', async (t) => {
  const big = (bytes: number): string => packet('message.push', { event_kind: 'im.message.received', message_id: '1', raw_text: 'x'.repeat(bytes) })
  const { code, out, err } = await translate([], `${big(20 * 2 ** 20)}\n${big(12 * 2 ** 20)}\n${lineOf('telegram', 'push: text')}\n`)
  t.equal(code, 1)
  t.strictSame(out.map((line) => line.length > 12 * 2 ** 20), [true, false])
  t.strictSame(err, ['line 1: longer than 16777216 bytes; must be one packet within a frame of that size'])
})

t.test('a reader that goes away is no failure', async (t) => {
  const child = spawn(process.execPath, ['--import', LOADER, MAIN, 'translate'], { stdio: 'pipe' })
  let err = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => { err += text })
  child.stdin.on('error', () => undefined)
  child.stdin.end(`${lineOf('telegram', 'push: text')}\n`.repeat(5_000))
  await once(child.stdout, 'data')
  child.stdout.destroy()
  const [code] = (await once(child, 'close')) as [number | null]
  t.equal(code, 0)
  t.equal(err, '')
})

t.test('types that xAgent never gets say so, and what a connector puts in them does not reach the terminal', async (t) => {
  const { code, out, err } = await translate([], [packet('session.sync_message', {}), packet('\u001b[2Jodd', {}), packet('ping', {}), packet('chat.message.delta', { message_id: 'a', sequence: 1, text: 'x' }), packet('chat.activity', { status: 'idle' })].join('\n'))
  t.equal(code, 0)
  t.strictSame(out, [])
  t.strictSame(err, [
    'line 1: session.sync_message becomes nothing: a signal of xAgent\'s inside: filtered in silence and counted',
    'line 2: [2Jodd becomes nothing: no catalog entry lists it: filtered in silence and counted',
    'line 3: ping becomes nothing: used or answered by the gateway itself',
    'line 4: chat.message.delta becomes nothing: checked and cached; only the final is sent',
    'line 5: chat.activity becomes nothing: this connector shows no activity',
  ])
})

t.test('usage: an unknown preset names those that there are, an unknown flag ends with 2, --help with 0', async (t) => {
  const [preset, flag, help] = await Promise.all([translate(['--preset', 'telegramm'], ''), translate(['--live'], ''), translate(['--help'], '')])
  t.strictSame([preset.code, flag.code, help.code], [2, 2, 0])
  t.match(preset.err.join(), /there is no preset "telegramm"; there are feishu, generic, telegram, wechat/)
  t.match(flag.err.join(), /--live/)
  t.match(help.out.join('\n'), /Usage: translate/)
})
