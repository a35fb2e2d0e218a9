/**
 * What real v1 connectors trip a gateway up with, trap by trap, at the lowest level that shows it. The numbers are those of the
 * project's list; 4, 5, 7, 19 and 20 are about links and stand in traps-links.test.ts.
 */
import t from 'tap'
import type { FinalFile } from '../../src/core/event.js'
import { fileIs } from '../../src/files/file-kind.js'
import { refusalOf } from '../../src/legacy/dialect.js'
import { readHealth } from '../../src/legacy/legacy-card.js'
import type { Clock } from '../../src/ops/clock.js'
import type { ChannelId, ConnectorCardId, ConnectorId, LegacyChannelId, MessageId, ToolId } from '../../src/protocol/ids.js'
import { FORBIDDEN_FIELDS } from '../../src/protocol/im-v2.js'
import { isObject, type JsonObject } from '../../src/protocol/packet.js'
import { CardDesk } from '../../src/route/card-desk.js'
import { projectDescriptor } from '../../src/translate/descriptor.js'
import { translatePush } from '../../src/translate/message-push.js'
import { planReply } from '../../src/translate/reply-plan.js'
import { replyTarget } from '../../src/translate/reply-target.js'
import { legacyArguments } from '../../src/translate/tool-call.js'
import { failureOutcome, toolOutcome } from '../../src/translate/tool-outcome.js'
import { Rig, type RigOptions } from '../helper/channel-rig.js'
import { CONNECTORS, recordedBody, recordedCases, recordedPacket, type Connector } from '../legacy/recorded.js'
import { contextOf, northbound, presetOf } from '../translate/golden.js'

const HOUR = 3_600_000
const NO_PROOF = { sentWhen: {}, field: null, recipient: null }
const pushOf = (connector: Connector, name: string, more: object = {}) => translatePush({ ...recordedPacket(connector, name).payload, ...more }, contextOf(connector))
const wordsOf = (connector: Connector, name: string, more: object = {}): unknown => northbound(pushOf(connector, name, more))?.['text']
const pushes = (connector: Connector): string[] => recordedCases(connector).filter((name) => name.startsWith('push'))
const staged = (ref: string): FinalFile => ({ ref, stored: { byteSize: 10, mimeType: 'image/png', filename: `${ref}.png` } })

function open(options: RigOptions = {}): Rig {
  const rig = new Rig(options)
  rig.open()
  return rig
}

t.test('trap 1: the words are raw_text, never the wrapper, and nothing stands before them', async (t) => {
  for (const connector of CONNECTORS) {
    t.equal(wordsOf(connector, 'push: command'), '/status north', 'a command starts the text')
    t.equal(wordsOf(connector, 'push: text', { raw_text: '@{approval:7} yes' }), '@{approval:7} yes')
    for (const name of pushes(connector)) t.notMatch(String(wordsOf(connector, name)), /Message from|Answer with the tool/)
  }
  t.equal(wordsOf('feishu', 'push: group, bot mentioned'), 'status of line 4?', 'a mention does not, either')
  t.match(pushOf('feishu', 'push: group, bot mentioned', { raw_text: '@_user_1 /stop' }), { kind: 'not_forwarded', reason: 'command' })
})

t.test('trap 2: no words and no files is no message', async (t) => {
  t.equal(pushOf('wechat', 'push: media that could not be fetched').kind, 'empty')
  t.equal(pushOf('feishu', 'push: group, bare mention').kind, 'empty')
  const rig = open()
  rig.push(' \n')
  t.equal(rig.transmits.length, 0)
  t.match(rig.deadLetters(), [{ reason: 'empty_message' }])
})

t.test('trap 3: an id that is empty or unique only in its chat, and the same message with other references', async (t) => {
  const id = (connector: Connector, more: object) => pushOf(connector, 'push: text', more).messageId
  t.not(id('telegram', { chat_id: '1' }), id('telegram', { chat_id: '2' }), 'the same number in another chat')
  t.match(id('wechat', { message_id: '' }), /^m_.+/)
  t.equal(id('wechat', { message_id: '' }), id('wechat', { message_id: '', context_token: 'another' }))
  t.not(id('wechat', { message_id: '' }), id('wechat', { message_id: '', raw_text: 'other words' }))
  const rig = open({ preset: 'feishu' })
  const pushed = (ref: string) => rig.feishu('ann', 'look', { message_id: 'om_same', chat_type: 'group', reply: { tool_id: 'feishu_message_reply', reply_ref: `reply_${ref}` }, media: [{ type: 'image', media_ref: ref, byte_size: 9 }] })
  pushed('one')
  pushed('two')
  t.match(rig.ended, [{ outcome: 'absorbed' }], 'a duplicate, not a conflict')
})

t.test('trap 6: two shapes of an error, and other codes for the same condition', async (t) => {
  const inAck = recordedPacket('telegram', 'tool on a channel that is not open')
  const ofItsOwn = recordedPacket('wechat', 'tool on a channel that is not open')
  t.strictSame([inAck.type, refusalOf(inAck)?.code], ['tool.invoke.ack', 'connection_not_authenticated'])
  t.strictSame([ofItsOwn.type, refusalOf(ofItsOwn)?.code], ['error', 'connection_not_found'])
  for (const [connector, answer] of [['telegram', inAck], ['wechat', ofItsOwn]] as const) t.match(toolOutcome(answer, NO_PROOF, presetOf(connector)), { class: 'permanent', reopen: true })
})

t.test('trap 8: a timeout or a reset is unknown: never sent again, never called sent', async (t) => {
  for (const connector of CONNECTORS) {
    for (const when of ['before', 'after']) t.equal(toolOutcome(recordedPacket(connector, `tool: connection reset ${when} the effect`), NO_PROOF, presetOf(connector)).class, 'in_doubt')
  }
  t.strictSame([failureOutcome('timeout', true).class, failureOutcome('link_lost', true).class, failureOutcome('not_connected', false).class], ['in_doubt', 'in_doubt', 'temporary'])
  const unheard = { ...recordedPacket('telegram', 'tool: text missing'), error: { code: 'tool_invoke_failed', message: 'something nobody has seen yet' } }
  for (const connector of CONNECTORS) t.equal(toolOutcome(unheard, NO_PROOF, presetOf(connector)).class, 'in_doubt', 'what no preset knows is unknown, too')
  const rig = open()
  rig.final('f1', 'hi')
  rig.answerStep('f1', 0, { class: 'in_doubt' })
  rig.final('f1', 'hi', 'pkt_again')
  t.strictSame([rig.answers, rig.calls], [['pkt_f1 rejected delivery_in_doubt false', 'pkt_again rejected delivery_in_doubt false'], ['hi']])
  t.match(rig.deadLetters(), [{ reason: 'delivery_in_doubt', certainty: 'unknown' }])
})

t.test('trap 9: caption and media are calls of their own, each recorded', async (t) => {
  for (const connector of CONNECTORS) {
    const target = replyTarget(recordedPacket(connector, 'push: text').payload, presetOf(connector), contextOf(connector).tools, null, 0)
    const plan = target === null ? null : planReply('the caption', [staged('a')], target, presetOf(connector), null)
    t.match(plan, { ok: true, steps: [{ kind: 'text' }, { kind: 'file' }] }, connector)
    t.notOk(plan?.ok === true && Object.hasOwn(plan.steps[1]?.arguments ?? {}, 'text'), 'no caption in the call of the file')
  }
  const rig = open()
  const uploaded = (ok: boolean) => rig.event({ type: 'uploaded', messageId: 'f1' as MessageId, step: 1, result: ok ? { ok, ref: 'media_a' } : { ok, temporary: true, code: 'http_503' } })
  rig.final('f1', 'the caption', 'pkt_1', [staged('a')])
  rig.answerStep('f1', 0, { class: 'sent' })
  uploaded(false)
  rig.final('f1', 'the caption', 'pkt_2', [staged('a')])
  uploaded(true)
  t.strictSame(rig.of('invoke').map(({ tool }) => tool), ['telegram_message_send', 'telegram_message_send_media'], 'the caption went once')
})

t.test('trap 10: an answer goes to whom it answers, though two write at once, and its address stays south', async (t) => {
  const rig = open({ preset: 'wechat' })
  rig.wechat('ann', 'what is up?')
  rig.wechat('bob', 'and here?')
  const addresses = () => rig.of('invoke').map(({ arguments: args }) => args)
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  t.equal(rig.transmits.length, 1, 'Bob waits for his turn')
  rig.final('f1', 'for Ann')
  t.match(addresses(), [{ recipient_ref: 'ann', context_token: 'ctx-ann-1', text: 'for Ann' }])
  t.notMatch(JSON.stringify(rig.records('body')), /ctx-ann|recipient_ref/)
  const target = replyTarget(recordedPacket('wechat', 'push: text').payload, presetOf('wechat'), new Map(), null, 0)
  t.ok((target?.expiresAt ?? 0) >= HOUR, 'not before its message does')
  const system = open({ preset: 'wechat' })
  system.final('f1', 'good morning')
  t.strictSame(system.answers, ['pkt_f1 rejected no_reply_target false'], 'nobody wrote: nobody is guessed')
})

t.test('trap 11: several finals of one turn are delivered and acked one by one; deltas are never sent', async (t) => {
  const rig = open()
  rig.push('hello')
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  for (const id of ['f1', 'f2']) {
    rig.delta(id, 1, `text of ${id}`)
    rig.final(id, `text of ${id}`)
    rig.answerStep(id, 0, { class: 'sent' })
  }
  t.strictSame(rig.calls, ['text of f1', 'text of f2'])
  t.strictSame(rig.answers, ['pkt_f1 accepted', 'pkt_f2 accepted'])
})

t.test('trap 12: bytes are fetched before the message leaves, under a URL of the gateway, and types are told by bytes', async (t) => {
  const [file] = northbound(pushOf('wechat', 'push: document'))?.['files'] as JsonObject[]
  t.equal(file?.['download_url'], '/files/refs/file_1', 'relative to the gateway, and its own reference')
  const rig = open()
  rig.push('', { media: [{ media_type: 'image', media_ref: 'r1' }] })
  t.strictSame([rig.of('fetch_files').length, rig.transmits.length], [1, 0])
  rig.event({ type: 'files_settled', seq: rig.of('fetch_files')[0]?.seq ?? 0, lost: ['http_404'] })
  t.match(rig.deadLetters(), [{ reason: 'empty_message', code: 'http_404' }], 'one that is gone is not promised')
  const png = Buffer.from('89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489', 'hex')
  t.match(await fileIs(png, { claimedMime: 'image/jpeg', claimedType: 'file' }), { mimeType: 'image/png', type: 'image' })
  t.match(await fileIs(Buffer.from('<html>'), { claimedMime: 'text/html', claimedType: 'file' }), { mimeType: 'application/octet-stream' })
})

t.test('trap 13: a file that the connector refuses at its upload ends the final before its call, and all are checked before the first step', async (t) => {
  const rig = open()
  rig.final('f1', '', 'pkt_1', [staged('a')])
  rig.event({ type: 'uploaded', messageId: 'f1' as MessageId, step: 0, result: { ok: false, temporary: false, code: 'http_415' } })
  t.strictSame([rig.answers, rig.of('invoke').length], [['pkt_1 rejected file_refused false'], 0])
  const early = open({ preset: 'feishu' })
  early.feishu('ann', 'send it')
  early.final('f1', 'here', 'pkt_1', [{ ref: 'a', stored: { byteSize: 10, mimeType: 'application/pdf', filename: 'a.pdf' } }])
  t.strictSame([early.answers, early.calls], [['pkt_1 rejected file_refused false'], []])
})

t.test('trap 14: no northbound channel id inside arguments, no legacy id in anything northbound', async (t) => {
  const tool = { toolId: 'send' as ToolId, title: '', description: '', inputSchema: {}, arguments: new Map([['text', 'text'], ['connector_channel_id', 'connector_channel_id']]) }
  t.match(legacyArguments(tool, { text: 'hi', connector_channel_id: 'cch_north' }, 'legacy_1' as LegacyChannelId), { ok: true, value: { text: 'hi', connector_channel_id: 'legacy_1' } })
  for (const connector of CONNECTORS) {
    const { payload, channelId } = recordedPacket(connector, 'descriptor after sign-in')
    const descriptor = payload['connection_descriptor'] as JsonObject
    const ids = descriptor['connection'] as JsonObject
    const shown = JSON.stringify(projectDescriptor(descriptor, { cardId: `im.${connector}` as ConnectorCardId, connectorId: 'conn_gateway' as ConnectorId, channelId: 'cch_north' as ChannelId, tools: [], trouble: null }))
    for (const id of [channelId, ids['connector_id'], ids['connector_channel_id']]) t.notOk(shown.includes(String(id)), `${connector}: ${String(id)}`)
  }
})

t.test('trap 15: health is said anew: the connector\'s own would take xAgent offline', async (t) => {
  const body = recordedBody('telegram', 'health')
  t.equal(readHealth(body).protocolVersion, null, 'a 1.0 connector names no version')
  const desk = new CardDesk({
    clock: {} as Clock, presetFor: () => presetOf('telegram'), skillFor: () => null, build: { build_time: '2026-01-01T00:00:00Z' }, apiKeyRequired: true, carriesFiles: true, claimCard: () => null, onServed: () => {},
  })
  t.equal(desk.take({ card: recordedBody('telegram', 'card'), skill: null }), null)
  const health = JSON.parse((desk.healthBody(null) as { body: string }).body) as JsonObject
  t.match(health, { status: 'ok', protocol_version: '3.0', build: { build_time: '2026-01-01T00:00:00Z' }, connector_card_version: /^0\.0\.4\+gateway\./ })
})

t.test('trap 16: only v2 fields cross, and error texts cross scrubbed or not at all', async (t) => {
  for (const connector of CONNECTORS) {
    for (const name of pushes(connector)) {
      const payload = northbound(pushOf(connector, name))
      if (payload === null) continue
      t.strictSame(Object.keys(payload).filter((key) => !['message_id', 'text', 'files', 'created_at'].includes(key)), [], name)
      t.strictSame(FORBIDDEN_FIELDS.filter((field) => JSON.stringify(payload).includes(`"${field}"`)), [])
    }
    const outcome = toolOutcome(recordedPacket(connector, 'tool: connection reset before the effect'), NO_PROOF, presetOf(connector))
    t.notMatch(String(outcome.detail), /AAinvented|ilink|open-apis/)
  }
})

t.test('trap 17: "sent" needs its proof, and "connected" is no proof of a delivery', async (t) => {
  const sent = recordedPacket('telegram', 'tool: text sent')
  const proof = { sentWhen: { status: ['sent'] }, field: 'message_id', recipient: null }
  const result = isObject(sent.payload['result']) ? sent.payload['result'] : {}
  t.equal(toolOutcome(sent, proof, presetOf('telegram')).class, 'sent')
  t.match(toolOutcome({ ...sent, payload: { result: { ...result, message_id: 0 } } }, proof, presetOf('telegram')), { class: 'in_doubt', code: 'sent_without_proof' })
  const connected = { connection: { status: 'connected' } }
  const trouble = { status: 'degraded', reason: 'the platform refuses the account' } as const
  t.match(projectDescriptor(connected, { cardId: 'c' as ConnectorCardId, connectorId: 'n' as ConnectorId, channelId: 'x' as ChannelId, tools: [], trouble }), { connection: { status: 'degraded' } })
})

t.test('trap 18: the bot\'s own, unfinished and recalled messages are no user\'s', async (t) => {
  const raw = recordedPacket('wechat', 'push: text').payload['raw_message'] as JsonObject
  for (const push of [pushOf('wechat', 'push: the bot\'s own message'), pushOf('wechat', 'push: text', { message_state: 1 }), pushOf('wechat', 'push: text', { raw_message: { ...raw, delete_time_ms: 1_796_076_753_999 } })]) {
    t.match(push, { kind: 'not_forwarded', reason: 'not_user_message' })
  }
})
