/**
 * Another account takes the channel over: what is bound to the earlier one reaches nobody any more, whatever is under way with
 * it (DESIGN §4 Turns rule 3: never to somebody else).
 */
import t from 'tap'
import { Rig } from '../helper/channel-rig.js'
import type { OutboundRecord } from '../../src/core/record.js'
import type { MessageId } from '../../src/protocol/ids.js'

const LONG = 'x'.repeat(4_500)

/** Ann has written, under the first account, and xAgent has accepted it. */
function annWaits(more: ConstructorParameters<typeof Rig>[0] = {}): Rig {
  const rig = new Rig({ preset: 'wechat', ...more })
  rig.open()
  rig.wechat('ann', 'hello')
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  return rig
}

/** Somebody else signs in, and Cyd writes to that account. */
function cydWrites(rig: Rig): void {
  rig.event({ type: 'rebound' })
  rig.wechat('cyd', 'hello from cyd')
}

const recipients = (rig: Rig): unknown[] => rig.of('invoke').map(({ arguments: args }) => args['recipient_ref'])

t.test('a final that waits for the connector', async (t) => {
  const rig = annWaits()
  rig.event({ type: 'legacy_changed', open: false })
  rig.final('f1', 'for ann', 'pkt_1')
  cydWrites(rig)
  rig.event({ type: 'legacy_changed', open: true })
  t.strictSame(rig.answers, ['pkt_1 rejected no_reply_target false'])
  t.strictSame(recipients(rig), [])
})

t.test('a final that was refused for now, and is redelivered in the new account\'s time', async (t) => {
  const rig = annWaits()
  rig.final('f1', 'for ann', 'pkt_1')
  rig.answerStep('f1', 0, { class: 'temporary' })
  cydWrites(rig)
  rig.final('f1', 'for ann', 'pkt_2')
  t.strictSame(rig.answers, ['pkt_1 rejected target_temporarily_unavailable true', 'pkt_2 rejected no_reply_target false'])
  t.strictSame(recipients(rig), ['ann'], 'only the call of the first account\'s time')
})

t.test('the same over a restart', async (t) => {
  const before = annWaits()
  before.final('f1', 'for ann', 'pkt_1')
  before.answerStep('f1', 0, { class: 'temporary' })
  before.event({ type: 'rebound' })
  const rig = new Rig({ preset: 'wechat', store: new Map(before.store), now: before.now })
  rig.open()
  rig.final('f1', 'for ann', 'pkt_2')
  t.strictSame(rig.answers, ['pkt_2 rejected no_reply_target false'])
  t.strictSame(recipients(rig), [])
})

t.test('a stream that began before, whose final comes when Cyd is being answered', async (t) => {
  const rig = annWaits()
  rig.delta('f1', 1, 'for')
  cydWrites(rig)
  rig.final('f1', 'for ann', 'pkt_1')
  t.strictSame(rig.answers, ['pkt_1 rejected no_reply_target false'])
  t.strictSame(recipients(rig), [])
})

t.test('an answer to what was accepted before: its turn stays until it is over, and Cyd is not answered by it', async (t) => {
  const rig = annWaits()
  rig.activity('thinking')
  cydWrites(rig)
  rig.final('f1', 'for ann', 'pkt_1')
  rig.activity('idle')
  t.strictSame(rig.answers, ['pkt_1 rejected no_reply_target false'])
  t.equal(rig.lastTransmit().seq, 2, 'then Cyd has the word')
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  rig.final('f2', 'for cyd', 'pkt_2')
  t.strictSame(recipients(rig), ['cyd'])
})

t.test('between two parts of a long answer: the rest is not sent', async (t) => {
  const rig = annWaits()
  rig.final('f1', LONG, 'pkt_1')
  cydWrites(rig)
  rig.answerStep('f1', 0, { class: 'sent' })
  t.strictSame(rig.answers, ['pkt_1 rejected no_reply_target false'])
  t.strictSame(recipients(rig), ['ann'])
  t.match(rig.deadLetters(), [{ reason: 'no_reply_target', certainty: 'certain', steps: [{ state: 'done' }, { state: 'waiting' }] }])
})

t.test('while the step\'s record is being stored: the call does not leave', async (t) => {
  const rig = annWaits()
  rig.holdCommits = true
  rig.final('f1', 'for ann', 'pkt_1')
  rig.event({ type: 'rebound' })
  rig.releaseCommits()
  t.strictSame(recipients(rig), [])
  t.match(rig.records<OutboundRecord>('outbound'), [{ state: 'ended', steps: [{ state: 'waiting' }] }])
})

t.test('while the channel is being opened again for the call', async (t) => {
  const rig = annWaits()
  rig.final('f1', 'for ann', 'pkt_1')
  rig.answerStep('f1', 0, { class: 'permanent', code: 'connection_not_authenticated', reopen: true })
  rig.event({ type: 'rebound' })
  rig.event({ type: 'reopened', messageId: 'f1' as MessageId, result: 'connected' })
  t.strictSame(rig.answers, ['pkt_1 rejected no_reply_target false'])
  t.equal(rig.of('invoke').length, 1, 'the call before, and none after')
})

t.test('a dead letter of the earlier account cannot be sent again', async (t) => {
  const rig = annWaits()
  rig.final('f1', 'for ann', 'pkt_1')
  rig.answerStep('f1', 0, { class: 'permanent' })
  cydWrites(rig)
  const [letter] = rig.deadLetters()
  if (letter === undefined) throw new Error('no dead letter')
  rig.replay(letter)
  t.strictSame(recipients(rig), ['ann'])
  t.match(rig.deadLetters(), [{ reason: 'no_reply_target' }])
})

t.test('a call that runs is awaited: what it did, it did for its own account', async (t) => {
  const rig = annWaits()
  rig.final('f1', 'for ann', 'pkt_1')
  cydWrites(rig)
  rig.answerStep('f1', 0, { class: 'sent' })
  t.strictSame(rig.answers, ['pkt_1 accepted'])
})

t.test('a channel with one conversation: a final bound to the earlier account is not sent by the new one', async (t) => {
  const rig = new Rig()
  rig.push('hello')
  rig.event({ type: 'legacy_changed', open: false })
  rig.final('f1', 'for sam', 'pkt_1')
  rig.event({ type: 'rebound' })
  rig.event({ type: 'legacy_changed', open: true })
  t.strictSame(rig.calls, [])
  t.strictSame(rig.answers, ['pkt_1 rejected no_reply_target false'])
  rig.push('hello under the new account')
  rig.final('f2', 'for the new one', 'pkt_2')
  t.strictSame(rig.calls, ['for the new one'])
})

t.test('"is typing" of an earlier account is not taken back through the new one', async (t) => {
  const rig = annWaits()
  rig.activity('thinking')
  t.match(rig.of('typing'), [{ on: true }])
  rig.event({ type: 'rebound' })
  rig.activity('idle')
  rig.pass(60_000)
  t.equal(rig.of('typing').length, 1)
})

t.test('a final that was refused for now holds no turn of an earlier account', async (t) => {
  const rig = annWaits()
  rig.activity('thinking')
  rig.final('f1', 'for ann', 'pkt_1')
  rig.answerStep('f1', 0, { class: 'temporary' })
  rig.activity('idle')
  cydWrites(rig)
  t.equal(rig.lastTransmit().seq, 2, 'Cyd has the word')
})
