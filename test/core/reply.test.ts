import t from 'tap'
import { Rig } from '../helper/channel-rig.js'
import type { MessageId } from '../../src/protocol/ids.js'
import type { OutboundRecord } from '../../src/core/record.js'

const LONG = ['a', 'b', 'c'].map((letter) => letter.repeat(4_000)).join('\n\n')

t.test('a final is accepted only after its call was answered and the record is durable (v2 §5)', async (t) => {
  const rig = new Rig()
  rig.final('f1', 'the answer')
  t.strictSame(rig.calls, ['the answer'])
  t.strictSame(rig.answers, [])
  rig.holdCommits = true
  rig.answerStep('f1', 0, { class: 'sent' })
  t.strictSame(rig.answers, [], 'not acked before it is durable')
  rig.releaseCommits()
  t.strictSame(rig.answers, ['pkt_f1 accepted'])
  t.match(rig.ended, [{ direction: 'outbound', outcome: 'accepted' }])
})

t.test('a step is durable as started before its call leaves', async (t) => {
  const rig = new Rig({ holdCommits: true })
  rig.final('f1', 'the answer')
  t.strictSame(rig.calls, [])
  rig.releaseCommits()
  t.strictSame(rig.calls, ['the answer'])
  t.match(rig.records<OutboundRecord>('outbound'), [{ state: 'running', steps: [{ kind: 'text', state: 'started' }] }])
})

t.test('a final redelivered while it runs: one run, accepted once, duplicate for the later transmission', async (t) => {
  const rig = new Rig()
  rig.final('f1', 'the answer', 'pkt_1')
  rig.final('f1', 'the answer', 'pkt_2')
  rig.answerStep('f1', 0, { class: 'sent' })
  t.equal(rig.calls.length, 1)
  t.strictSame(rig.answers, ['pkt_1 accepted', 'pkt_2 duplicate'])
  t.equal(rig.ended.length, 1)
})

t.test('a final redelivered after it was done gets duplicate without side effects, also after a restart (v2 §7)', async (t) => {
  const rig = new Rig()
  rig.final('f1', 'the answer')
  rig.answerStep('f1', 0, { class: 'sent' })
  rig.final('f1', 'the answer', 'pkt_2')
  t.strictSame(rig.answers, ['pkt_f1 accepted', 'pkt_2 duplicate'])
  const after = new Rig({ store: rig.store })
  after.final('f1', 'the answer', 'pkt_3')
  t.strictSame(after.answers, ['pkt_3 duplicate'])
  t.equal(after.calls.length, 0)
})

t.test('after a restart between started and done it is in doubt and not sent again', async (t) => {
  const rig = new Rig()
  rig.final('f1', 'the answer')
  t.equal(rig.calls.length, 1)
  const after = new Rig({ store: rig.store })
  t.match(after.ended, [{ outcome: 'in_doubt', reason: 'delivery_in_doubt', certainty: 'unknown' }])
  after.final('f1', 'the answer', 'pkt_2')
  t.strictSame(after.answers, ['pkt_2 rejected delivery_in_doubt false'])
  t.equal(after.calls.length, 0)
  t.match(after.deadLetters(), [{ reason: 'delivery_in_doubt', certainty: 'unknown', direction: 'outbound' }])
})

t.test('after a temporary failure of part 2 of 3, part 1 is not sent again', async (t) => {
  const rig = new Rig()
  rig.final('f1', LONG, 'pkt_1')
  rig.answerStep('f1', 0, { class: 'sent' })
  rig.answerStep('f1', 1, { class: 'temporary' })
  t.strictSame(rig.answers, ['pkt_1 rejected target_temporarily_unavailable true'])
  for (const again of [rig, new Rig({ store: new Map(rig.store) })]) {
    again.final('f1', LONG, 'pkt_2')
    again.answerStep('f1', 1, { class: 'sent' })
    again.answerStep('f1', 2, { class: 'sent' })
    t.strictSame(again.answers.slice(-1), ['pkt_2 accepted'])
  }
  t.strictSame(rig.calls.map((text) => text[0]), ['a', 'b', 'b', 'c'])
})

t.test('after a permanent rejection whose ack was lost: the same answer, no call', async (t) => {
  const rig = new Rig()
  rig.final('f1', 'the answer', 'pkt_1')
  rig.answerStep('f1', 0, { class: 'permanent', detail: 'HTTP 403' })
  t.strictSame(rig.answers, ['pkt_1 rejected target_delivery_failed false'])
  const after = new Rig({ store: rig.store })
  after.final('f1', 'the answer', 'pkt_2')
  t.strictSame(after.answers, ['pkt_2 rejected target_delivery_failed false'])
  t.equal(after.calls.length, 0)
  t.match(rig.deadLetters(), [{ reason: 'rejected', certainty: 'certain', message: 'permanent: HTTP 403' }])
})

t.test('an unknown outcome is in doubt: rejected for good, a dead letter for a person, never sent again', async (t) => {
  const rig = new Rig()
  rig.final('f1', 'the answer', 'pkt_1')
  rig.answerStep('f1', 0, { class: 'in_doubt', code: 'tool_timeout' })
  rig.final('f1', 'the answer', 'pkt_2')
  t.strictSame(rig.answers, ['pkt_1 rejected delivery_in_doubt false', 'pkt_2 rejected delivery_in_doubt false'])
  t.equal(rig.calls.length, 1)
  t.match(rig.deadLetters(), [{ reason: 'delivery_in_doubt', certainty: 'unknown', settled: null }])
})

t.test('a late answer corrects certainty and bars replay; it is not acked twice and no further step runs', async (t) => {
  const rig = new Rig()
  rig.final('f1', LONG, 'pkt_1')
  rig.answerStep('f1', 0, { class: 'in_doubt', code: 'tool_timeout' })
  rig.event({ type: 'late_answer', messageId: 'f1' as MessageId, step: 0, outcome: { class: 'sent', code: 'sent', detail: null, reopen: false } })
  t.match(rig.deadLetters(), [{ settled: 'sent', certainty: 'certain' }])
  t.equal(rig.answers.length, 1)
  t.equal(rig.calls.length, 1)
  t.equal(rig.ended.length, 1)
})

t.test('in_doubt: retry, for a tool known to be idempotent, refuses for now instead', async (t) => {
  const preset = new Rig().shared.dialect.preset
  const retry = { defaultTarget: preset.defaultTarget === null ? null : { ...preset.defaultTarget, inDoubt: 'retry' as const } }
  const rig = new Rig({ overrides: retry })
  rig.final('f1', 'the answer', 'pkt_1')
  rig.answerStep('f1', 0, { class: 'in_doubt' })
  t.strictSame(rig.answers, ['pkt_1 rejected target_temporarily_unavailable true'])
  rig.final('f1', 'the answer', 'pkt_2')
  rig.answerStep('f1', 0, { class: 'sent' })
  t.strictSame(rig.answers.slice(1), ['pkt_2 accepted'])
})

t.test('the same message_id with other content is a conflict, while it runs and after (v2 §9)', async (t) => {
  const rig = new Rig()
  rig.final('f1', 'the answer', 'pkt_1')
  rig.final('f1', 'other words', 'pkt_2')
  rig.answerStep('f1', 0, { class: 'sent' })
  rig.final('f1', 'other words', 'pkt_3')
  t.strictSame(rig.answers, ['pkt_2 rejected message_id_conflict false', 'pkt_1 accepted', 'pkt_3 rejected message_id_conflict false'])
  t.strictSame(rig.ended.map(({ outcome }) => outcome), ['conflict', 'accepted', 'conflict'])
  t.equal(rig.calls.length, 1)
})

t.test('one final at a time per channel, in order of arrival; one refused for now leaves the line', async (t) => {
  const rig = new Rig()
  rig.final('f1', 'one')
  rig.final('f2', 'two')
  t.strictSame(rig.calls, ['one'])
  rig.answerStep('f1', 0, { class: 'temporary' })
  t.strictSame(rig.calls, ['one', 'two'])
  rig.answerStep('f2', 0, { class: 'sent' })
  t.strictSame(rig.answers, ['pkt_f1 rejected target_temporarily_unavailable true', 'pkt_f2 accepted'])
})

t.test('a final refused for now and never redelivered is abandoned after the ttl, with what was sent', async (t) => {
  const rig = new Rig()
  rig.final('f1', LONG)
  rig.answerStep('f1', 0, { class: 'sent' })
  rig.answerStep('f1', 1, { class: 'temporary' })
  rig.pass(3_600_000)
  t.match(rig.ended.slice(1), [{ outcome: 'abandoned', reason: 'abandoned_partial' }])
  t.match(rig.deadLetters(), [{ reason: 'abandoned_partial', steps: [{ state: 'done' }, { state: 'waiting' }, { state: 'waiting' }] }])
})

t.test('with the connector away a final waits, then is refused for now, taken over with its target', async (t) => {
  const rig = new Rig()
  rig.event({ type: 'legacy_changed', open: false })
  rig.final('f1', 'one', 'pkt_1')
  rig.pass(19_999)
  t.strictSame(rig.answers, [])
  rig.pass(1)
  t.strictSame(rig.answers, ['pkt_1 rejected connector_unavailable true'])
  t.match(rig.ended, [{ outcome: 'deferred', inLedger: false }])
  t.match(rig.records('outbound'), [{ state: 'deferred', target: { tool: 'telegram_message_send' } }])
  rig.final('f1', 'one', 'pkt_2')
  rig.event({ type: 'legacy_changed', open: true })
  t.strictSame(rig.calls, ['one'])
})

t.test('every transmission of a final gets an answer, also of one that is refused before it begins', async (t) => {
  const rig = new Rig()
  rig.event({ type: 'legacy_changed', open: false })
  rig.final('f1', 'one', 'pkt_1')
  rig.final('f1', 'one', 'pkt_2')
  rig.pass(20_000)
  t.strictSame(rig.answers, ['pkt_1 rejected connector_unavailable true', 'pkt_2 rejected connector_unavailable true'])
  t.equal(rig.ended.length, 1)
})

t.test('too many waiting finals on a channel are refused as busy', async (t) => {
  const rig = new Rig({ limits: { outboundQueue: 2 } })
  for (const id of ['f1', 'f2', 'f3']) rig.final(id, id)
  t.strictSame(rig.answers, ['pkt_f3 rejected busy true'])
})

t.test('a final with files is rejected for good where the connector has no tool for them', async (t) => {
  const rig = new Rig({ preset: 'generic' })
  rig.push('hello', { reply: { tool_id: 'send', reply_ref: 'r' } })
  rig.final('f1', 'see this', 'pkt_1', [{ ref: 'file_1', stored: { byteSize: 1, mimeType: 'image/png', filename: 'a.png' } }])
  t.strictSame(rig.answers, ['pkt_1 rejected files_not_supported false'])
  t.match(rig.deadLetters(), [{ reason: 'files_not_supported' }])
  t.equal(rig.calls.length, 0)
})

t.test('a final on a channel where two conversations wrote has no target until turns exist', async (t) => {
  const rig = new Rig({ preset: 'generic' })
  rig.push('hello', { chat_id: 'ann', reply: { tool_id: 'send' } })
  rig.final('f1', 'to ann', 'pkt_1')
  rig.answerStep('f1', 0, { class: 'sent' })
  rig.push('hello', { chat_id: 'bob', reply: { tool_id: 'send' } })
  rig.final('f2', 'to whom?', 'pkt_2')
  t.strictSame(rig.answers, ['pkt_1 accepted', 'pkt_2 rejected no_reply_target false'])
  t.match(rig.deadLetters(), [{ reason: 'no_reply_target', direction: 'outbound' }])
  t.equal(rig.calls.length, 1)
  const after = new Rig({ preset: 'generic', store: rig.store })
  after.final('f3', 'and now?', 'pkt_3')
  t.strictSame(after.answers, ['pkt_3 rejected no_reply_target false'], 'a restart does not forget who wrote')
})

t.test('a writer whose message was not forwarded still counts as a conversation', async (t) => {
  const rig = new Rig({ preset: 'generic' })
  rig.push('hello', { chat_id: 'ann', reply: { tool_id: 'send' } })
  rig.push('/stop', { chat_id: 'crowd', chat_type: 'group', reply: { tool_id: 'send' } })
  rig.final('f1', 'to whom?', 'pkt_1')
  t.strictSame(rig.answers, ['pkt_1 rejected no_reply_target false'])
})

t.test('a connector that does not know the channel is asked once more after a re-open', async (t) => {
  const rig = new Rig()
  const forgot = { class: 'permanent', code: 'connection_not_authenticated', reopen: true } as const
  rig.final('f1', 'one', 'pkt_1')
  rig.answerStep('f1', 0, forgot)
  t.equal(rig.of('reopen').length, 1)
  t.strictSame(rig.answers, [])
  rig.event({ type: 'reopened', messageId: 'f1' as MessageId, result: 'connected' })
  t.equal(rig.calls.length, 2)
  rig.answerStep('f1', 0, forgot)
  t.equal(rig.of('reopen').length, 1, 'once')
  t.strictSame(rig.answers, ['pkt_1 rejected target_delivery_failed false'])
  rig.final('f2', 'two', 'pkt_2')
  rig.answerStep('f2', 0, forgot)
  rig.event({ type: 'reopened', messageId: 'f2' as MessageId, result: 'signed_out' })
  t.strictSame(rig.answers.slice(1), ['pkt_2 rejected connection_not_authenticated false'])
  rig.final('f3', 'three', 'pkt_3')
  rig.answerStep('f3', 0, forgot)
  rig.event({ type: 'reopened', messageId: 'f3' as MessageId, result: 'no_answer' })
  t.strictSame(rig.answers.slice(2), ['pkt_3 rejected target_temporarily_unavailable true'], 'certainly not sent: it can come again')
})

t.test('after a sign-in earlier writers and their targets are forgotten', async (t) => {
  const rig = new Rig({ preset: 'generic' })
  for (const chat_id of ['ann', 'bob']) rig.push('hello', { chat_id, reply: { tool_id: 'send', reply_ref: 'r' } })
  rig.event({ type: 'rebound' })
  rig.push('hello', { chat_id: 'cyd', reply: { tool_id: 'send', reply_ref: 'r2' } })
  rig.final('f1', 'to cyd', 'pkt_1')
  t.match(rig.of('invoke'), [{ arguments: { text: 'to cyd', reply_ref: 'r2' } }])
  t.match(rig.records('turn'), [{ conversations: [['cyd', 0]] }])
})

t.test('an outcome of class auth is permanent and marks the account', async (t) => {
  const rig = new Rig()
  rig.final('f1', 'one', 'pkt_1')
  rig.answerStep('f1', 0, { class: 'auth', code: 'tool_invoke_failed' })
  t.strictSame(rig.answers, ['pkt_1 rejected target_delivery_failed false'])
  t.equal(rig.of('auth_doubtful').length, 1)
})

t.test('tool_call_id is derived from channel, message and step', async (t) => {
  const rig = new Rig()
  rig.final('f1', LONG)
  rig.answerStep('f1', 0, { class: 'sent' })
  t.strictSame(rig.of('invoke').map(({ toolCallId }) => toolCallId), ['cch_1:f1:1', 'cch_1:f1:2'])
})

t.test('an ended record keeps neither words nor the target', async (t) => {
  const rig = new Rig()
  rig.final('f1', 'a secret answer')
  rig.answerStep('f1', 0, { class: 'sent' })
  t.notMatch(JSON.stringify(rig.records('outbound')), /a secret answer/)
  t.match(rig.records('outbound'), [{ state: 'ended', target: null, ack: { status: 'accepted' } }])
})

t.test('a store that cannot be asked: refused for now, nothing is done', async (t) => {
  const rig = new Rig()
  const event = rig.event.bind(rig)
  rig.event = (next) => event(next.type === 'outbound_found' ? { type: 'lookup_failed', messageId: next.messageId, purpose: next.purpose } : next)
  rig.final('f1', 'one', 'pkt_1')
  t.strictSame(rig.answers, ['pkt_1 rejected store_unavailable true'])
  t.equal(rig.calls.length, 0)
})

t.test('a store that cannot be asked for a final that is to be given up is asked again', async (t) => {
  const rig = new Rig({ limits: { ttlMs: 60_000 } })
  rig.final('f1', 'one')
  rig.answerStep('f1', 0, { class: 'temporary' })
  const event = rig.event.bind(rig)
  rig.event = (next) => event(next.type === 'outbound_found' ? { type: 'lookup_failed', messageId: next.messageId, purpose: next.purpose } : next)
  rig.pass(65_000)
  t.strictSame(rig.ended.filter(({ outcome }) => outcome === 'abandoned'), [])
  rig.event = event
  rig.pass(500)
  t.match(rig.ended.filter(({ outcome }) => outcome === 'abandoned'), [{ messageId: 'f1' }])
  t.match(rig.deadLetters(), [{ reason: 'abandoned_partial' }])
  t.equal(rig.channel.deferred.size, 0)
})

t.test('a full set of finals that wait for their redelivery lets each of them come', async (t) => {
  const rig = new Rig({ limits: { outboundQueue: 1 } })
  for (let i = 0; i < 10; i += 1) {
    rig.final(`f${i}`, 'text')
    rig.answerStep(`f${i}`, 0, { class: 'temporary' })
  }
  rig.final('f10', 'text', 'pkt_new')
  t.equal(rig.answers.at(-1), 'pkt_new rejected busy true', 'a new one finds no place')
  rig.final('f3', 'text', 'pkt_again')
  rig.answerStep('f3', 0, { class: 'sent' })
  t.equal(rig.answers.at(-1), 'pkt_again accepted')
  rig.final('f10', 'text', 'pkt_then')
  rig.answerStep('f10', 0, { class: 'sent' })
  t.equal(rig.answers.at(-1), 'pkt_then accepted', 'its place is free')
})

t.test('after a restart finals that nobody redelivers are given up in order of time, whatever their ids', async (t) => {
  const before = new Rig({ limits: { ttlMs: 300_000 } })
  before.open()
  before.push('hello')
  for (const id of ['f2', 'f1']) {
    before.final(id, id)
    before.answerStep(id, 0, { class: 'temporary' })
    before.pass(60_000)
  }
  const rig = new Rig({ limits: { ttlMs: 300_000 }, store: new Map(before.store), now: before.now })
  rig.open()
  rig.event({ type: 'legacy_changed', open: false })
  rig.pass(179_999)
  t.strictSame(rig.ended.filter(({ outcome }) => outcome === 'abandoned'), [])
  rig.pass(1)
  t.match(rig.ended.filter(({ outcome }) => outcome === 'abandoned'), [{ messageId: 'f2' }])
  rig.pass(60_000)
  t.match(rig.ended.filter(({ outcome }) => outcome === 'abandoned'), [{ messageId: 'f2' }, { messageId: 'f1' }])
})
