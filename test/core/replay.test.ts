/** A person sends a dead letter again: what was not sent is called once more, to where it was bound (DESIGN §4 rule 3, §8). */
import t from 'tap'
import { step } from '../../src/core/channel.js'
import { LIMITS, Rig, T0, type RigOptions } from '../helper/channel-rig.js'
import type { DeadLetterRecord, OutboundRecord } from '../../src/core/record.js'
import type { MessageId } from '../../src/protocol/ids.js'

const LONG = `${'a'.repeat(2_000)}\n\n${'b'.repeat(2_000)}\n\n${'c'.repeat(2_000)}`
const DAY = 86_400_000

/** Ann has written in one WeChat account, and xAgent has taken it. */
function ann(options: RigOptions = {}): Rig {
  const rig = new Rig({ preset: 'wechat', ...options })
  rig.open()
  rig.wechat('ann', 'from ann')
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  return rig
}

/** Her answer ended this way. */
function ended(how: 'in_doubt' | 'permanent', text = 'to ann', options: RigOptions = {}): Rig {
  const rig = ann(options)
  rig.final('f1', text)
  rig.answerStep('f1', 0, { class: how })
  return rig
}

function onlyLetter(rig: Rig): DeadLetterRecord {
  const [letter, ...more] = rig.deadLetters()
  if (letter === undefined || more.length > 0) throw new Error(`${more.length + (letter === undefined ? 0 : 1)} dead letters`)
  return letter
}

function restarted(before: Rig, now = before.now): Rig {
  const rig = new Rig({ preset: 'wechat', store: new Map(before.store), now })
  Object.assign(rig.shared, { nextSeq: before.shared.nextSeq, nextDeadLetter: before.shared.nextDeadLetter, run: `${before.shared.run}x` })
  return rig
}

/** What the books of one direction say beyond what is pending (DESIGN §8). */
function imbalance(...rigs: readonly Rig[]): number {
  const sum = (count: (rig: Rig) => number): number => rigs.reduce((all, rig) => all + count(rig), 0)
  const { channel } = rigs.at(-1) as Rig
  const running = channel.line.filter((job) => (job.record !== null || job.ending !== null) && !channel.deferred.has(job.final.messageId)).length
  const came = sum((rig) => [...rig.of('received'), ...rig.of('replayed')].filter(({ direction }) => direction === 'outbound').length)
  return came - sum((rig) => rig.ended.filter(({ direction, inLedger }) => direction === 'outbound' && inLedger).length) - channel.deferred.size - running
}

const sentTo = (rig: Rig): string[] => rig.of('invoke').map((call) => String(call.arguments['recipient_ref']))

t.test('in doubt, or refused by the platform: it runs once more, and is an answer that was sent', async (t) => {
  for (const how of ['in_doubt', 'permanent'] as const) {
    const rig = ended(how)
    const letter = onlyLetter(rig)
    t.equal(imbalance(rig), 0)
    rig.replay(letter)
    t.strictSame(rig.deadLetters(), [], 'no dead letter while it runs')
    t.equal(rig.store.has(`body ${letter.bodyKey}`), false, 'nor its words')
    t.equal(imbalance(rig), 0)
    t.strictSame(sentTo(rig), ['ann', 'ann'])
    t.match(rig.of('invoke')[1]?.arguments, { text: 'to ann', recipient_ref: 'ann', context_token: 'ctx-ann-1' })
    rig.answerStep('f1', 0, { class: 'sent' })
    t.strictSame(rig.deadLetters(), [])
    t.equal(imbalance(rig), 0)
    t.match(rig.ended.filter(({ direction }) => direction === 'outbound').map(({ outcome }) => outcome), [how === 'in_doubt' ? 'in_doubt' : 'rejected', 'accepted'])
    t.match(rig.of('replayed'), [{ direction: 'outbound', deadLetterBytes: letter.bytes }])
    t.equal(rig.answers.length, 1, 'xAgent has had its answer')
  }
})

t.test('it goes to Ann, though Bob has the word by now', async (t) => {
  const rig = ended('permanent')
  rig.pass(LIMITS.turns.timeoutMs)
  rig.wechat('bob', 'from bob')
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  rig.replay(onlyLetter(rig))
  t.equal(rig.channel.turn?.finals, 0, 'it is no work of Bob\'s turn')
  rig.answerStep('f1', 0, { class: 'sent' })
  t.strictSame(sentTo(rig), ['ann', 'ann'])
})

t.test('parts that were sent are not sent again', async (t) => {
  const rig = ann()
  rig.final('f1', LONG)
  rig.answerStep('f1', 0, { class: 'sent' })
  rig.answerStep('f1', 1, { class: 'in_doubt' })
  rig.replay(onlyLetter(rig))
  rig.answerStep('f1', 1, { class: 'sent' })
  rig.answerStep('f1', 2, { class: 'sent' })
  t.strictSame(rig.calls.map(([first]) => first), ['a', 'b', 'b', 'c'])
  t.strictSame(rig.of('invoke').map(({ toolCallId }) => toolCallId.at(-1)), ['1', '2', '2', '3'])
  t.equal(imbalance(rig), 0)
})

t.test('a failed replay leaves exactly one dead letter, which can be sent again', async (t) => {
  for (const how of ['in_doubt', 'permanent', 'temporary', 'auth'] as const) {
    const rig = ended('permanent')
    const first = onlyLetter(rig)
    rig.replay(first)
    rig.answerStep('f1', 0, { class: how })
    const second = onlyLetter(rig)
    t.not(second.id, first.id)
    t.match(second, { reason: how === 'in_doubt' ? 'delivery_in_doubt' : 'rejected', messageId: 'f1', target: first.target, attempts: first.attempts })
    t.match(rig.store.get(`body ${second.bodyKey}`), { text: 'to ann' })
    t.equal(imbalance(rig), 0)
    rig.replay(second)
    rig.answerStep('f1', 0, { class: 'sent' })
    t.strictSame(rig.deadLetters(), [])
    t.equal(imbalance(rig), 0)
  }
})

t.test('the connector is away: it waits as long as a final does, then it is a dead letter once more', async (t) => {
  const rig = ended('permanent')
  rig.event({ type: 'legacy_changed', open: false })
  rig.replay(onlyLetter(rig))
  t.strictSame(rig.deadLetters(), [])
  t.equal(imbalance(rig), 0)
  rig.pass(LIMITS.outboundWaitMs)
  t.match(onlyLetter(rig), { reason: 'rejected', code: 'connector_unavailable', certainty: 'certain' })
  t.equal(imbalance(rig), 0)
  rig.event({ type: 'legacy_changed', open: true })
  t.equal(rig.calls.length, 1)
})

t.test('replayed twice at once: it runs once', async (t) => {
  const rig = ended('permanent')
  const letter = onlyLetter(rig)
  const text = 'to ann'
  rig.replay(letter)
  rig.event({ type: 'replayed', letter, text })
  t.equal(rig.calls.length, 2)
  rig.answerStep('f1', 0, { class: 'sent' })
  t.equal(rig.ended.at(-1)?.outcome, 'accepted')
  rig.event({ type: 'replayed', letter, text })
  t.equal(rig.calls.length, 2, 'nor after it was sent')
  t.equal(rig.of('replayed').length, 1)
  t.equal(imbalance(rig), 0)
})

t.test('a replay waits for the final that runs, and is followed by the next', async (t) => {
  const rig = ended('permanent')
  rig.final('f2', 'another')
  rig.replay(onlyLetter(rig))
  rig.final('f3', 'a third')
  t.strictSame(rig.calls, ['to ann', 'another'])
  rig.answerStep('f2', 0, { class: 'sent' })
  rig.answerStep('f1', 0, { class: 'sent' })
  rig.answerStep('f3', 0, { class: 'sent' })
  t.strictSame(rig.calls, ['to ann', 'another', 'to ann', 'a third'])
})

t.test('xAgent sends it again while it is replayed: one run', async (t) => {
  const rig = ended('permanent')
  rig.replay(onlyLetter(rig))
  rig.final('f1', 'to ann', 'pkt_again')
  rig.answerStep('f1', 0, { class: 'sent' })
  t.equal(rig.calls.length, 2)
  t.strictSame(rig.answers.slice(1), ['pkt_again duplicate'])
})

t.test('the same id has a new life that waits for its redelivery: the old letter is left alone', async (t) => {
  const rig = ended('permanent')
  const letter = onlyLetter(rig)
  rig.pass(LIMITS.ttlMs)
  rig.final('f1', 'to ann', 'pkt_later')
  rig.answerStep('f1', 0, { class: 'temporary' })
  rig.replay(letter)
  t.equal(rig.calls.length, 2)
  t.strictSame(rig.deadLetters(), [letter])
  t.equal(imbalance(rig), 0)
})

t.test('a late answer says that it was sent: it is never sent again', async (t) => {
  const rig = ended('in_doubt')
  rig.event({ type: 'late_answer', messageId: 'f1' as MessageId, step: 0, outcome: { class: 'sent', code: 'sent', detail: null, reopen: false } })
  const letter = onlyLetter(rig)
  t.equal(letter.settled, 'sent')
  rig.replay(letter)
  t.equal(rig.calls.length, 1)
  t.strictSame(rig.deadLetters(), [letter])
  t.equal(imbalance(rig), 0)
  rig.final('f2', 'the next', 'pkt_2')
  rig.answerStep('f2', 0, { class: 'sent' })
  t.equal(rig.answers.at(-1), 'pkt_2 accepted', 'the line goes on')
})

t.test('a late answer says that it was not sent: it may be', async (t) => {
  const rig = ended('in_doubt')
  rig.event({ type: 'late_answer', messageId: 'f1' as MessageId, step: 0, outcome: { class: 'permanent', code: 'x', detail: null, reopen: false } })
  rig.replay(onlyLetter(rig))
  rig.answerStep('f1', 0, { class: 'sent' })
  t.equal(rig.calls.length, 2)
  t.strictSame(rig.deadLetters(), [])
})

t.test('a letter whose target has expired ends as no_reply_target', async (t) => {
  const rig = ended('permanent')
  rig.pass(DAY - 1)
  const kept = restarted(rig)
  kept.replay(onlyLetter(kept))
  t.equal(kept.calls.length, 1, 'it lives for 24 h')
  rig.pass(1)
  rig.replay(onlyLetter(rig))
  t.equal(rig.calls.length, 1)
  t.match(onlyLetter(rig), { reason: 'no_reply_target', code: 'no_reply_target' })
  t.equal(imbalance(rig), 0)
})

t.test('a letter that was bound to nobody stays one', async (t) => {
  const rig = new Rig({ preset: 'wechat' })
  rig.open()
  rig.final('f1', 'to whom?')
  const first = onlyLetter(rig)
  t.match(first, { reason: 'no_reply_target', target: null })
  // Somebody who writes later is not who it was meant for.
  rig.wechat('bob', 'from bob')
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  rig.replay(first)
  t.strictSame(rig.calls, [])
  t.match(onlyLetter(rig), { reason: 'no_reply_target', target: null })
  t.equal(imbalance(rig), 0)
})

t.test('a letter with nothing to call stays as it is, and does not stop the line', async (t) => {
  const rig = ended('permanent')
  const letter = onlyLetter(rig)
  rig.replay({ ...letter, steps: [] })
  t.strictSame(rig.deadLetters(), [letter])
  t.equal(imbalance(rig), 0)
  rig.final('f2', 'the next', 'pkt_2')
  rig.answerStep('f2', 0, { class: 'sent' })
  t.equal(rig.answers.at(-1), 'pkt_2 accepted')
})

t.test('the store cannot be asked: nothing happens to the letter, and it can be sent later', async (t) => {
  const rig = ended('permanent')
  const letter = onlyLetter(rig)
  // Not performed by the rig, so that the look-up stays without an answer.
  step(rig.channel, rig.shared, { type: 'replayed', letter, text: 'to ann' }, rig.now)
  rig.event({ type: 'lookup_failed', messageId: letter.messageId, purpose: 'redelivery' })
  t.strictSame(rig.deadLetters(), [letter])
  t.equal(imbalance(rig), 0)
  rig.replay(letter)
  t.equal(rig.calls.length, 2)
})

t.test('xAgent sends it again, with its files, while it is looked up and while it runs: one run, and no conflict', async (t) => {
  const file = { ref: 'a', stored: { byteSize: 3, mimeType: 'image/png', filename: 'a.png' } }
  for (const when of ['looking', 'running'] as const) {
    const rig = ann()
    rig.final('f1', 'see', 'pkt_1', [file])
    rig.answerStep('f1', 0, { class: 'permanent' })
    const letter = onlyLetter(rig)
    if (when === 'looking') step(rig.channel, rig.shared, { type: 'replayed', letter, text: 'see' }, rig.now)
    else rig.replay(letter)
    rig.final('f1', 'see', 'pkt_2', [file])
    if (when === 'looking') rig.event({ type: 'outbound_found', messageId: letter.messageId, purpose: 'redelivery', record: rig.records<OutboundRecord>('outbound')[0] ?? null })
    rig.answerStep('f1', 0, { class: 'sent' })
    rig.event({ type: 'uploaded', messageId: letter.messageId, step: 1, result: { ok: true, ref: 'south' } })
    rig.answerStep('f1', 1, { class: 'sent' })
    t.strictSame(rig.answers, ['pkt_1 rejected target_delivery_failed false', 'pkt_2 duplicate'], when)
    rig.final('f1', 'other words', 'pkt_3', [file])
    t.equal(rig.answers.at(-1), 'pkt_3 rejected message_id_conflict false', 'other words are a conflict all the same')
  }
})

t.test('given up half sent and put together from its parts: the same final is no conflict afterwards', async (t) => {
  const rig = ann({ limits: { ttlMs: 60_000 } })
  rig.final('f1', LONG)
  rig.answerStep('f1', 0, { class: 'temporary' })
  rig.pass(60_000)
  rig.replay(onlyLetter(rig))
  rig.final('f1', LONG, 'pkt_2')
  for (const part of [0, 1, 2]) rig.answerStep('f1', part, { class: 'sent' })
  t.equal(rig.answers.at(-1), 'pkt_2 duplicate')
})

t.test('a restart while its call runs: in doubt, one letter, not called by itself', async (t) => {
  const before = ended('permanent')
  before.replay(onlyLetter(before))
  const rig = restarted(before)
  rig.open()
  rig.pass(60_000)
  t.equal(rig.calls.length, 0)
  const letter = onlyLetter(rig)
  t.match(letter, { reason: 'delivery_in_doubt', certainty: 'unknown', messageId: 'f1' })
  t.equal(imbalance(before, rig), 0)
  rig.replay(letter)
  rig.answerStep('f1', 0, { class: 'sent' })
  t.strictSame(sentTo(rig), ['ann'])
  t.strictSame(rig.deadLetters(), [])
  t.equal(imbalance(before, rig), 0)
})

t.test('a restart while it waits for the connector: given up with one letter, at the latest after ttl', async (t) => {
  const before = ended('permanent')
  before.event({ type: 'legacy_changed', open: false })
  before.replay(onlyLetter(before))
  const rig = restarted(before)
  rig.open()
  t.equal(imbalance(before, rig), 0)
  rig.pass(LIMITS.ttlMs)
  t.equal(rig.calls.length, 0)
  t.match(onlyLetter(rig), { messageId: 'f1', certainty: 'certain', target: { arguments: { recipient_ref: 'ann' } } })
  t.equal(imbalance(before, rig), 0)
  rig.replay(onlyLetter(rig))
  t.strictSame(sentTo(rig), ['ann'])
})

t.test('a restart after a replay that was sent: never again', async (t) => {
  const before = ended('in_doubt')
  const letter = onlyLetter(before)
  before.replay(letter)
  before.answerStep('f1', 0, { class: 'sent' })
  const rig = restarted(before)
  rig.open()
  rig.event({ type: 'replayed', letter, text: 'to ann' })
  t.equal(rig.calls.length, 0)
  t.strictSame(rig.deadLetters(), [])
})

t.test('given up half sent: a replay sends the rest', async (t) => {
  const rig = ann()
  rig.final('f1', LONG)
  rig.answerStep('f1', 0, { class: 'sent' })
  rig.answerStep('f1', 1, { class: 'temporary' })
  rig.pass(LIMITS.ttlMs)
  t.equal(rig.now, T0 + LIMITS.ttlMs)
  const letter = onlyLetter(rig)
  t.match(letter, { reason: 'abandoned_partial', steps: [{ state: 'done' }, { state: 'waiting' }, { state: 'waiting' }] })
  rig.replay(letter)
  rig.answerStep('f1', 1, { class: 'sent' })
  rig.answerStep('f1', 2, { class: 'sent' })
  t.strictSame(rig.calls.map(([first]) => first), ['a', 'b', 'b', 'c'])
  t.equal(imbalance(rig), 0)
})
