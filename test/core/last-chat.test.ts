/**
 * Feishu sends a private answer to whichever private chat wrote last: when somebody else has written since, an answer is
 * refused rather than sent to the wrong person (DESIGN §5).
 */
import t from 'tap'
import { Rig, type RigOptions } from '../helper/channel-rig.js'
import type { DeadLetterRecord } from '../../src/core/record.js'

/** The preset's reorder window, and no turn ends meanwhile. */
const WINDOW_MS = 250
const LONG = `${'a'.repeat(15_000)}\n\n${'b'.repeat(15_000)}`
const MOVED = 'rejected reply_target_moved false'

/** The channel of an app to which these people have written, in this order; xAgent has taken what the first one wrote. */
function app(writers: readonly string[], options: RigOptions = {}): Rig {
  const rig = new Rig({ preset: 'feishu', ...options })
  rig.open()
  for (const who of writers) write(rig, who)
  accept(rig)
  return rig
}

function write(rig: Rig, who: string, more: Record<string, unknown> = {}): void {
  rig.feishu(who, `from ${who}`, more)
  rig.pass(WINDOW_MS)
}

const accept = (rig: Rig): void => rig.ack(rig.lastTransmit(), { status: 'accepted' })
const inGroup = { chat_id: 'oc_group', chat_type: 'group', reply: { tool_id: 'feishu_message_reply', reply_ref: 'ref-1' } }

function answer(rig: Rig, id: string, text = `answer ${id}`): void {
  rig.final(id, text)
  rig.answerStep(id, 0, { class: 'sent' })
}

/** The connector could not be read for a time. */
function gap(rig: Rig): void {
  rig.event({ type: 'legacy_changed', open: false })
  rig.event({ type: 'legacy_changed', open: true })
}

function onlyLetter(rig: Rig): DeadLetterRecord {
  const [letter, ...more] = rig.deadLetters().filter(({ direction }) => direction === 'outbound')
  if (letter === undefined || more.length > 0) throw new Error(`${more.length + (letter === undefined ? 0 : 1)} dead letters`)
  return letter
}

function restarted(before: Rig): Rig {
  const rig = new Rig({ preset: 'feishu', store: new Map(before.store), now: before.now })
  rig.shared.nextDeadLetter = before.shared.nextDeadLetter
  rig.open()
  return rig
}

t.test('nobody else has written: the answer is sent', async (t) => {
  const rig = app(['ann'])
  answer(rig, 'f1')
  t.strictSame(rig.calls, ['answer f1'])
  t.strictSame(rig.answers, ['pkt_f1 accepted'])
})

t.test('Bob wrote after Ann: her answer is refused for good, and kept with where it was meant to go', async (t) => {
  const rig = app(['ann', 'bob'])
  rig.final('f1', 'to ann')
  t.strictSame(rig.calls, [])
  t.strictSame(rig.answers, [`pkt_f1 ${MOVED}`])
  t.match(onlyLetter(rig), {
    reason: 'reply_target_moved', code: 'reply_target_moved', certainty: 'certain', messageId: 'f1', steps: [{ state: 'waiting' }],
    target: { tool: 'feishu_message_send', lastChatOnly: true, conversation: rig.channel.turn?.conversation },
  })
  t.notOk(onlyLetter(rig).journal.some(({ what }) => what === 'started'), 'no call was begun')
  rig.final('f1', 'to ann', 'pkt_again')
  t.strictSame(rig.answers.slice(1), [`pkt_again ${MOVED}`], 'remembered')
  t.match(rig.ended.filter(({ direction }) => direction === 'outbound'), [{ outcome: 'rejected', reason: 'reply_target_moved', inLedger: true }])
})

t.test('the next answer, to whoever wrote last, is not held back by it', async (t) => {
  const rig = app(['ann', 'bob'])
  rig.activity('thinking')
  rig.final('f1', 'to ann')
  rig.activity('idle')
  accept(rig)
  answer(rig, 'f2', 'to bob')
  t.strictSame(rig.calls, ['to bob'])
})

t.test('it moves between two parts of a long answer: the first was sent, the second is not', async (t) => {
  const rig = app(['ann'])
  rig.final('f1', LONG)
  t.equal(rig.calls.length, 1)
  write(rig, 'bob')
  rig.answerStep('f1', 0, { class: 'sent' })
  t.equal(rig.calls.length, 1)
  t.strictSame(rig.answers, [`pkt_f1 ${MOVED}`])
  t.strictSame(onlyLetter(rig).steps.map(({ state }) => state), ['done', 'waiting'])
})

t.test('it moves while the step\'s record is being stored: the call does not leave', async (t) => {
  const rig = app(['ann'])
  rig.holdCommits = true
  rig.final('f1', 'to ann')
  write(rig, 'bob')
  rig.releaseCommits()
  t.strictSame(rig.calls, [])
  t.strictSame(rig.answers, [`pkt_f1 ${MOVED}`])
  t.strictSame(onlyLetter(rig).steps.map(({ state }) => state), ['waiting'])
})

t.test('it moves while the channel is being opened again for the call', async (t) => {
  const rig = app(['ann'])
  rig.final('f1', 'to ann')
  rig.answerStep('f1', 0, { class: 'permanent', reopen: true })
  write(rig, 'bob')
  rig.event({ type: 'reopened', messageId: 'f1' as never, result: 'connected' })
  t.equal(rig.calls.length, 1)
  t.strictSame(rig.answers, [`pkt_f1 ${MOVED}`])
})

t.test('every private push moves it, forwarded or not', async (t) => {
  const pushes: Readonly<Record<string, Record<string, unknown>>> = {
    'of another kind': { event_kind: 'im.message.reaction' },
    'with nothing in it': { raw_text: '' },
    'with a file only': { raw_text: '', files: [{ media_ref: 'm', type: 'image' }] },
    'known already': { message_id: 'om_b' },
  }
  for (const [what, more] of Object.entries(pushes)) {
    const rig = new Rig({ preset: 'feishu' })
    rig.open()
    write(rig, 'ann')
    accept(rig)
    write(rig, 'bob', { message_id: 'om_b' })
    write(rig, 'ann')
    rig.final('f0', 'to ann')
    t.equal(rig.calls.length, 1, 'Ann was last')
    rig.answerStep('f0', 0, { class: 'sent' })
    write(rig, 'bob', more)
    rig.final('f1', 'to ann')
    t.equal(rig.calls.length, 1, what)
    t.equal(rig.answers.at(-1), `pkt_f1 ${MOVED}`)
  }
})

t.test('a group push moves nothing', async (t) => {
  const rig = app(['ann'])
  write(rig, 'bob', inGroup)
  answer(rig, 'f1')
  t.strictSame(rig.calls, ['answer f1'])
})

t.test('an answer in a group goes to the message itself, whoever wrote since', async (t) => {
  const rig = new Rig({ preset: 'feishu' })
  rig.open()
  write(rig, 'cyd', inGroup)
  accept(rig)
  for (const who of ['ann', 'bob']) write(rig, who)
  gap(rig)
  answer(rig, 'f1')
  t.match(rig.of('invoke'), [{ tool: 'feishu_message_reply', arguments: { reply_ref: 'ref-1', text: 'answer f1' } }])
  t.strictSame(rig.answers, ['pkt_f1 accepted'])
})

t.test('after a gap nobody knows who was last: refused if the channel ever had two private chats', async (t) => {
  const rig = app(['bob', 'ann'])
  rig.activity('thinking')
  rig.final('f0', 'to bob')
  rig.activity('idle')
  accept(rig)
  gap(rig)
  rig.final('f1', 'to ann')
  t.strictSame(rig.calls, [])
  t.strictSame(rig.answers, ['pkt_f0', 'pkt_f1'].map((packet) => `${packet} ${MOVED}`))
})

t.test('after a gap it is still Ann if nobody else ever wrote privately', async (t) => {
  const rig = app(['ann'])
  write(rig, 'bob', inGroup)
  gap(rig)
  answer(rig, 'f1')
  t.strictSame(rig.calls, ['answer f1'])
})

t.test('a gap in the middle of a long answer', async (t) => {
  const rig = app(['bob', 'ann'])
  rig.activity('thinking')
  rig.final('f0', 'to bob')
  rig.activity('idle')
  accept(rig)
  rig.final('f1', LONG)
  t.equal(rig.calls.length, 1)
  gap(rig)
  rig.answerStep('f1', 0, { class: 'sent' })
  t.equal(rig.calls.length, 1)
  t.equal(rig.answers.at(-1), `pkt_f1 ${MOVED}`)
})

t.test('when Ann writes after the gap, it is known again', async (t) => {
  const rig = app(['bob', 'ann'])
  rig.activity('thinking')
  rig.final('f0', 'to bob')
  rig.activity('idle')
  accept(rig)
  gap(rig)
  write(rig, 'ann')
  answer(rig, 'f1', 'to ann')
  t.strictSame(rig.calls, ['to ann'])
})

t.test('after a restart as after a gap', async (t) => {
  const alone = restarted(app(['ann']))
  answer(alone, 'f1', 'to ann')
  t.strictSame(alone.calls, ['to ann'])

  const before = app(['ann', 'bob', 'ann'])
  const rig = restarted(before)
  rig.final('f1', 'to ann')
  t.strictSame(rig.calls, [])
  t.strictSame(rig.answers, [`pkt_f1 ${MOVED}`])
  write(rig, 'ann')
  rig.replay(onlyLetter(rig))
  t.strictSame(rig.calls, ['to ann'])
})

t.test('that there were two is known after two restarts, too', async (t) => {
  const before = app(['bob', 'ann'])
  const between = restarted(before)
  write(between, 'ann')
  const rig = restarted(between)
  rig.final('f1', 'to bob')
  t.strictSame(rig.calls, [])
})

t.test('moved back and replayed: it goes to Ann', async (t) => {
  const rig = app(['ann', 'bob'])
  rig.final('f1', 'to ann')
  write(rig, 'ann')
  rig.replay(onlyLetter(rig))
  t.strictSame(rig.calls, ['to ann'])
  rig.answerStep('f1', 0, { class: 'sent' })
  t.strictSame(rig.deadLetters(), [])
  rig.final('f1', 'to ann', 'pkt_again')
  t.equal(rig.answers.at(-1), 'pkt_again duplicate')
})

t.test('moved in the middle, moved back and replayed: only the part that was not sent', async (t) => {
  const rig = app(['ann'])
  rig.final('f1', LONG)
  write(rig, 'bob')
  rig.answerStep('f1', 0, { class: 'sent' })
  write(rig, 'ann')
  rig.replay(onlyLetter(rig))
  rig.answerStep('f1', 1, { class: 'sent' })
  t.strictSame(rig.calls, ['a'.repeat(15_000), 'b'.repeat(15_000)])
  t.strictSame(rig.deadLetters(), [])
})

t.test('replayed while Bob is last: a dead letter once more, and not sent', async (t) => {
  const rig = app(['ann', 'bob'])
  rig.final('f1', 'to ann')
  const first = onlyLetter(rig)
  rig.replay(first)
  t.strictSame(rig.calls, [])
  const second = onlyLetter(rig)
  t.not(second.id, first.id)
  t.match(second, { reason: 'reply_target_moved', target: first.target })
  write(rig, 'ann')
  rig.replay(second)
  t.strictSame(rig.calls, ['to ann'])
})

t.test('a connector that takes a recipient has no such guard', async (t) => {
  const rig = new Rig({ preset: 'wechat' })
  rig.open()
  for (const who of ['ann', 'bob']) rig.wechat(who, `from ${who}`)
  accept(rig)
  gap(rig)
  answer(rig, 'f1')
  t.match(rig.of('invoke'), [{ arguments: { recipient_ref: 'ann' } }])
})
