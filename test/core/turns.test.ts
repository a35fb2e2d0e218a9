/** Ann and Bob write to one channel: each answer goes to whom the turn rules say (DESIGN §4 Turns). */
import t from 'tap'
import { LIMITS, LINK, Rig, type RigOptions } from '../helper/channel-rig.js'
import { newFlushGate } from '../../src/core/flush.js'
import type { LinkId } from '../../src/protocol/ids.js'

const MINUTE = 60_000

/** Ann and Bob in one WeChat account, with xAgent connected. */
function people(options: RigOptions = {}): Rig {
  const rig = new Rig({ preset: 'wechat', ...options })
  rig.open()
  return rig
}

/** The words of a waiting message, by the order of their pushes. */
const texts = (rig: Rig): string[] => rig.transmits.map(({ messageId }) => messageId)
const accept = (rig: Rig): void => rig.ack(rig.lastTransmit(), { status: 'accepted' })
/** Who was called, and with what words. */
const sent = (rig: Rig): string[] => rig.of('invoke').map((call) => `${String(call.arguments['recipient_ref'])}: ${String(call.arguments['text'])}`)
const ends = (rig: Rig): string[] => rig.of('turn_ended').map(({ end }) => end)

/** A final that arrives and is sent. */
function answer(rig: Rig, id: string, text: string): void {
  rig.final(id, text)
  rig.answerStep(id, 0, { class: 'sent' })
}

/** One whole run of an agent that shows its activity. */
function run(rig: Rig, id: string, text: string): void {
  accept(rig)
  rig.activity('thinking')
  answer(rig, id, text)
  rig.activity('idle')
}

t.test('one answer each: Bob waits for the end of Ann\'s run', async (t) => {
  const rig = people()
  const [ann, bob] = [rig.wechat('ann', 'from ann'), rig.wechat('bob', 'from bob')]
  t.strictSame(texts(rig), [ann])
  run(rig, 'f1', 'to ann')
  t.strictSame(texts(rig), [ann, bob], 'the end is certain: at once')
  run(rig, 'f2', 'to bob')
  t.strictSame(sent(rig), ['ann: to ann', 'bob: to bob'])
  t.strictSame(ends(rig), ['certain', 'certain'])
})

t.test('several finals with a 40 s tool between', async (t) => {
  const rig = people()
  rig.wechat('ann', 'from ann')
  rig.wechat('bob', 'from bob')
  accept(rig)
  rig.activity('thinking')
  answer(rig, 'f1', 'first')
  rig.activity('tool')
  rig.pass(40_000)
  t.equal(rig.transmits.length, 1, 'Bob still waits')
  answer(rig, 'f2', 'second')
  rig.activity('idle')
  t.equal(rig.transmits.length, 2)
  t.strictSame(sent(rig), ['ann: first', 'ann: second'])
  t.strictSame(ends(rig), ['certain'])
})

t.test('no activity packets and an answer after 150 s', async (t) => {
  const rig = people()
  rig.wechat('ann', 'from ann')
  rig.wechat('bob', 'from bob')
  accept(rig)
  rig.pass(150_000)
  t.equal(rig.transmits.length, 1)
  answer(rig, 'f1', 'to ann')
  rig.pass(9_999)
  t.equal(rig.transmits.length, 1)
  rig.pass(1)
  t.equal(rig.transmits.length, 2, 'quiet for 10 s after as many finals as messages')
  t.strictSame(sent(rig), ['ann: to ann'])
  t.strictSame(ends(rig), ['likely'])
})

t.test('a run without a final', async (t) => {
  const rig = people()
  rig.wechat('ann', 'from ann')
  rig.wechat('bob', 'from bob')
  accept(rig)
  rig.activity('thinking')
  rig.activity('idle')
  rig.pass(9_999)
  t.equal(rig.transmits.length, 1)
  rig.pass(1)
  t.equal(rig.transmits.length, 2)
  t.strictSame(ends(rig), ['likely'])
})

t.test('Ann writes on while Bob waits: she joins until he has waited for turns.timeout', async (t) => {
  const rig = people()
  rig.wechat('ann', 'one')
  rig.wechat('bob', 'from bob')
  accept(rig)
  rig.activity('tool')
  rig.pass(4 * MINUTE)
  const joined = rig.wechat('ann', 'two')
  t.equal(rig.lastTransmit().messageId, joined)
  accept(rig)
  rig.pass(MINUTE)
  rig.wechat('ann', 'three')
  t.equal(rig.transmits.length, 2, 'it queues')
  answer(rig, 'f1', 'to ann')
  rig.activity('idle')
  rig.pass(10_000)
  t.strictSame(ends(rig), ['likely'], 'two were accepted: the end is not certain')
  t.equal(rig.transmits.length, 3)
  run(rig, 'f2', 'to bob')
  t.equal(rig.transmits.length, 4)
  run(rig, 'f3', 'to ann again')
  t.strictSame(sent(rig), ['ann: to ann', 'bob: to bob', 'ann: to ann again'])
})

t.test('Ann\'s second message is accepted while her first run ends', async (t) => {
  const rig = people()
  rig.wechat('ann', 'one')
  rig.wechat('bob', 'from bob')
  accept(rig)
  rig.activity('thinking')
  rig.wechat('ann', 'two')
  answer(rig, 'f1', 'to one')
  accept(rig)
  rig.activity('idle')
  t.strictSame(ends(rig), [], 'the idle may belong to the first run')
  rig.pass(5_000)
  rig.activity('thinking')
  rig.pass(20_000)
  t.strictSame(ends(rig), [])
  answer(rig, 'f2', 'to two')
  rig.activity('idle')
  rig.pass(10_000)
  t.strictSame(ends(rig), ['likely'])
  t.strictSame(sent(rig), ['ann: to one', 'ann: to two'])
})

t.test('the ack is lost before the final: the duplicate dates from the first transmission', async (t) => {
  const rig = people()
  rig.wechat('ann', 'from ann')
  rig.wechat('bob', 'from bob')
  rig.activity('thinking')
  answer(rig, 'f1', 'to ann')
  rig.activity('idle')
  t.strictSame(ends(rig), [], 'no clock runs before the first acceptance')
  rig.pass(31_000)
  t.equal(rig.transmits.length, 2, 'redelivered')
  rig.ack(rig.lastTransmit(), { status: 'duplicate' })
  t.strictSame(ends(rig), ['certain'])
  t.strictSame(sent(rig), ['ann: to ann'])
  t.equal(rig.transmits.length, 3, 'Bob is next')
})

t.test('the gateway is restarted mid-turn: the answer still goes to Ann, and Bob still waits', async (t) => {
  const before = people()
  before.wechat('ann', 'from ann')
  before.wechat('bob', 'from bob')
  accept(before)
  before.activity('thinking')
  const rig = new Rig({ preset: 'wechat', store: new Map(before.store), now: before.now + 5_000 })
  rig.open()
  t.equal(rig.transmits.length, 0)
  answer(rig, 'f1', 'to ann')
  t.strictSame(sent(rig), ['ann: to ann'])
  t.match(rig.of('invoke')[0]?.arguments, { context_token: 'ctx-ann-1' }, 'the token of the message that is answered')
  rig.activity('idle')
  t.equal(rig.transmits.length, 1)
  t.strictSame(ends(rig), ['certain'])
})

t.test('a restart before the ack: the answer may come before the channel has its place to flush', async (t) => {
  const before = people()
  before.wechat('ann', 'from ann')
  before.wechat('bob', 'from bob')
  const rig = new Rig({ preset: 'wechat', store: new Map(before.store), now: before.now })
  Object.assign(rig.shared, { gate: newFlushGate(0) })
  rig.open()
  t.equal(rig.transmits.length, 0)
  answer(rig, 'f1', 'to ann')
  t.strictSame(sent(rig), ['ann: to ann'])
})

t.test('a message of the turn whose record is lost with a restart: the turn ends all the same', async (t) => {
  for (const how of ['sent', 'refused'] as const) {
    const before = people()
    before.wechat('ann', 'from ann')
    if (how === 'refused') before.reject(before.lastTransmit(), 'later', true)
    before.wechat('bob', 'from bob')
    const store = new Map([...before.store].filter(([key, value]) => !(key.startsWith('inbound ') && (value as { messageId: string }).messageId === 'm1')))
    const rig = new Rig({ preset: 'wechat', store, now: before.now })
    rig.open()
    t.equal(rig.transmits.length, how === 'refused' ? 1 : 0, how === 'refused' ? 'xAgent has not taken it: Bob is next' : 'xAgent may have taken it')
    rig.pass(LIMITS.turns.timeoutMs)
    t.equal(rig.lastTransmit().messageId, 'm2', how)
  }
})

t.test('a restart between the end of one turn and the next', async (t) => {
  const before = people()
  before.wechat('ann', 'from ann')
  run(before, 'f1', 'to ann')
  const rig = new Rig({ preset: 'wechat', store: new Map(before.store), now: before.now })
  t.equal(rig.channel.turn, null)
  t.match(rig.channel.lastTurn, { conversation: before.channel.lastTurn?.conversation, how: 'certain' })
})

t.test('xAgent is away for 10 minutes mid-turn: clocks stand still', async (t) => {
  const rig = people()
  rig.wechat('ann', 'from ann')
  rig.wechat('bob', 'from bob')
  accept(rig)
  rig.activity('thinking')
  rig.leave()
  rig.pass(10 * MINUTE)
  t.strictSame(ends(rig), [])
  rig.open('link_2' as LinkId)
  rig.pass(4 * MINUTE)
  t.equal(rig.transmits.length, 1)
  answer(rig, 'f1', 'to ann')
  t.strictSame(sent(rig), ['ann: to ann'])
  rig.activity('idle')
  t.strictSame(ends(rig), ['certain'])
})

t.test('a turn is over one ttl after its last acceptance or work, though xAgent stays away', async (t) => {
  const rig = people()
  rig.wechat('ann', 'from ann')
  accept(rig)
  rig.leave()
  rig.pass(60 * MINUTE - 1)
  t.strictSame(ends(rig), [])
  rig.pass(1)
  t.strictSame(ends(rig), ['timeout'])
})

t.test('a final is refused temporarily and redelivered in Bob\'s turn: it goes to Ann', async (t) => {
  const rig = people()
  rig.wechat('ann', 'from ann')
  rig.wechat('bob', 'from bob')
  accept(rig)
  rig.activity('thinking')
  rig.final('f1', 'to ann', 'pkt_1')
  rig.answerStep('f1', 0, { class: 'temporary' })
  rig.activity('idle')
  t.strictSame(rig.answers, ['pkt_1 rejected target_temporarily_unavailable true'])
  t.strictSame(ends(rig), [], 'a final that was refused for now keeps the turn, for turns.timeout')
  rig.pass(5 * MINUTE)
  t.strictSame(ends(rig), ['certain'])
  accept(rig)
  rig.activity('thinking')
  rig.final('f1', 'to ann', 'pkt_2')
  rig.answerStep('f1', 0, { class: 'sent' })
  answer(rig, 'f2', 'to bob')
  t.strictSame(sent(rig), ['ann: to ann', 'ann: to ann', 'bob: to bob'])
})

t.test('a final that is refused as busy keeps the person to whom it is bound', async (t) => {
  const rig = people({ limits: { outboundQueue: 1 } })
  rig.wechat('ann', 'from ann')
  rig.wechat('bob', 'from bob')
  accept(rig)
  rig.final('f0', 'first', 'pkt_0')
  rig.final('f1', 'second', 'pkt_1')
  t.strictSame(rig.answers, ['pkt_1 rejected busy true'])
  rig.answerStep('f0', 0, { class: 'sent' })
  rig.pass(MINUTE)
  t.strictSame(ends(rig), [], 'it keeps the turn, for turns.timeout')
  rig.pass(4 * MINUTE)
  t.strictSame(ends(rig), ['likely'])
  accept(rig)
  answer(rig, 'f1', 'second')
  t.strictSame(sent(rig), ['ann: first', 'ann: second'])
})

t.test('a final without any turn: the only conversation, or nobody', async (t) => {
  const alone = people()
  alone.wechat('ann', 'from ann')
  run(alone, 'f1', 'to ann')
  alone.pass(MINUTE)
  answer(alone, 'f2', 'a reminder')
  t.strictSame(sent(alone), ['ann: to ann', 'ann: a reminder'])

  const rig = people()
  for (const who of ['ann', 'bob']) rig.wechat(who, `from ${who}`)
  run(rig, 'f1', 'to ann')
  run(rig, 'f2', 'to bob')
  rig.pass(MINUTE)
  rig.final('f3', 'a reminder', 'pkt_3')
  t.equal(rig.answers.at(-1), 'pkt_3 rejected no_reply_target false')
  t.match(rig.deadLetters(), [{ reason: 'no_reply_target', messageId: 'f3' }])
})

t.test('a late answer goes to the conversation that ended, until another one has the word', async (t) => {
  const rig = people()
  rig.wechat('ann', 'from ann')
  rig.wechat('bob', 'from bob')
  run(rig, 'f1', 'to ann')
  accept(rig)
  rig.pass(5 * MINUTE)
  t.strictSame(ends(rig), ['certain', 'timeout'])
  answer(rig, 'f2', 'late, to bob')
  t.strictSame(sent(rig), ['ann: to ann', 'bob: late, to bob'])
  rig.wechat('ann', 'again')
  rig.reject(rig.lastTransmit(), 'channel_busy', true)
  rig.final('f3', 'later still', 'pkt_3')
  t.equal(rig.answers.at(-1), 'pkt_3 rejected no_reply_target false', 'Ann has the word, and her message was not taken')
})

t.test('a transmitted message that expires unacked', async (t) => {
  const rig = people({ limits: { ttlMs: 60 * MINUTE } })
  rig.wechat('ann', 'from ann')
  rig.pass(MINUTE)
  rig.wechat('bob', 'from bob')
  rig.pass(59 * MINUTE + 30_000)
  t.match(rig.ended, [{ outcome: 'expired', certainty: 'unknown' }])
  t.strictSame(ends(rig), [], 'xAgent may have taken it')
  const before = rig.transmits.length
  rig.final('f1', 'whose?', 'pkt_1')
  t.equal(rig.answers.at(-1), 'pkt_1 rejected no_reply_target false', 'the target of an expired message is removed')
  rig.pass(5 * MINUTE)
  t.strictSame(ends(rig), ['timeout'])
  t.equal(rig.transmits.length, before, 'Bob\'s has expired meanwhile')
  t.match(rig.ended.map(({ outcome }) => outcome), ['expired', 'rejected', 'expired'])
})

t.test('a transmitted message expires unacked, then the gateway is restarted: its answer may still come, and goes to nobody else', async (t) => {
  const before = people({ limits: { ttlMs: MINUTE } })
  before.wechat('ann', 'from ann')
  before.pass(40_000)
  t.equal(before.transmits.length, 2, 'redelivered after the ack timeout')
  before.wechat('bob', 'from bob')
  before.pass(25_000)
  t.match(before.ended, [{ outcome: 'expired', certainty: 'unknown' }])
  const rig = new Rig({ preset: 'wechat', limits: { ttlMs: MINUTE }, store: new Map(before.store), now: before.now })
  rig.open()
  t.strictSame(texts(rig), [], 'Bob waits')
  rig.final('f1', 'for ann')
  t.strictSame(rig.answers, ['pkt_f1 rejected no_reply_target false'])
})

t.test('a message that certainly was not taken ends the turn at once', async (t) => {
  const rig = people()
  rig.wechat('ann', 'from ann')
  rig.wechat('bob', 'from bob')
  rig.reject(rig.lastTransmit(), 'not_allowed', false)
  t.strictSame(ends(rig), ['unaccepted'])
  t.equal(rig.transmits.length, 2)
  answer(rig, 'f1', 'to bob')
  t.strictSame(sent(rig), ['bob: to bob'])
})

t.test('channel_busy for half an hour: the turn goes on, nobody is answered by mistake', async (t) => {
  const rig = people()
  rig.wechat('ann', 'from ann')
  rig.wechat('bob', 'from bob')
  for (let minute = 0; minute < 30; minute += 1) {
    if (rig.channel.inFlight.size > 0) rig.reject(rig.lastTransmit(), 'channel_busy', true)
    rig.pass(MINUTE / 2)
    if (rig.channel.inFlight.size > 0) rig.reject(rig.lastTransmit(), 'channel_busy', true)
    rig.pass(MINUTE / 2)
  }
  t.strictSame(ends(rig), [])
  t.ok(rig.transmits.length > 30)
  t.equal(new Set(texts(rig)).size, 1, 'Ann\'s message alone')
  run(rig, 'f1', 'to ann')
  t.strictSame(sent(rig), ['ann: to ann'])
  t.equal(new Set(texts(rig)).size, 2)
})

t.test('a lone busy message and a foreign final', async (t) => {
  const rig = people()
  rig.wechat('bob', 'from bob')
  run(rig, 'f1', 'to bob')
  rig.wechat('ann', 'from ann')
  rig.reject(rig.lastTransmit(), 'channel_busy', true)
  rig.final('f2', 'about something else', 'pkt_2')
  t.equal(rig.answers.at(-1), 'pkt_2 rejected no_reply_target false')
  rig.pass(1_000)
  t.equal(rig.transmits.length, 3, 'Ann\'s goes again')
  rig.final('f3', 'still not hers', 'pkt_3')
  t.equal(rig.answers.at(-1), 'pkt_3 rejected no_reply_target false', 'its last ack is a rejection')
  accept(rig)
  answer(rig, 'f4', 'to ann')
  t.strictSame(sent(rig), ['bob: to bob', 'ann: to ann'])
})

t.test('a delta, then somebody else\'s turn, then its final', async (t) => {
  const rig = people()
  rig.wechat('ann', 'from ann')
  rig.wechat('bob', 'from bob')
  accept(rig)
  rig.delta('f1', 1, 'to')
  rig.pass(5 * MINUTE)
  t.strictSame(ends(rig), ['timeout'])
  accept(rig)
  rig.final('f1', 'to ann')
  t.equal(rig.channel.turn?.finals, 0, 'it is not work of Bob\'s turn')
  rig.answerStep('f1', 0, { class: 'sent' })
  answer(rig, 'f2', 'to bob')
  t.strictSame(sent(rig), ['ann: to ann', 'bob: to bob'])
})

t.test('a delta, somebody else\'s turn, a restart, then its final', async (t) => {
  const before = people()
  before.wechat('ann', 'from ann')
  before.wechat('bob', 'from bob')
  accept(before)
  before.delta('f1', 1, 'to')
  before.pass(5 * MINUTE)
  accept(before)
  const rig = new Rig({ preset: 'wechat', store: new Map(before.store), now: before.now })
  rig.open()
  answer(rig, 'f1', 'to ann')
  t.strictSame(sent(rig), ['ann: to ann'])
})

t.test('a thousand waiting messages of Ann: they join, then Bob has the word before she has it again', async (t) => {
  const rig = new Rig({ preset: 'wechat', limits: { maxMessages: 2_000 } })
  for (let i = 0; i < 1_000; i += 1) rig.wechat('ann', `ann ${i}`)
  rig.wechat('bob', 'from bob')
  rig.open()
  for (let i = 0; i < 1_000; i += 1) accept(rig)
  t.equal(rig.transmits.length, 1_000, 'what waited when the turn opened joins')
  rig.wechat('ann', 'one more')
  accept(rig)
  t.ok((rig.channel.turn?.messages.length ?? 99) <= 2, 'only what an answer can be bound to is kept')
  rig.activity('thinking')
  answer(rig, 'f1', 'to ann')
  rig.activity('idle')
  rig.pass(10_000)
  t.equal(rig.transmits.length, 1_002)
  run(rig, 'f2', 'to bob')
  t.strictSame(sent(rig), ['ann: to ann', 'bob: to bob'])
})

t.test('one person alone is never held for a turn', async (t) => {
  const rig = people()
  for (let i = 0; i < 20; i += 1) {
    rig.wechat('ann', `ann ${i}`)
    t.equal(rig.transmits.length, i + 1)
    accept(rig)
    if (i % 3 === 0) rig.activity('tool')
    rig.pass(20_000)
  }
})

t.test('a new turn is durable before its first frame leaves', async (t) => {
  const rig = people({ holdCommits: true })
  rig.wechat('ann', 'from ann')
  t.equal(rig.transmits.length, 0)
  rig.releaseCommits()
  t.equal(rig.transmits.length, 1)
  t.match(rig.records('turn'), [{ number: 1, turn: { messages: [{ messageId: 'm1', target: { arguments: { recipient_ref: 'ann' } } }], accepted: 0 } }])
})

t.test('a channel without conversations has no extra write on its way', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('one')
  const before = rig.of('commit').length
  rig.now += 1
  rig.push('two')
  accept(rig)
  accept(rig)
  const commits = rig.of('commit').slice(before)
  t.notOk(commits.some(({ changes }) => changes.some(({ kind }) => kind === 'turn')))
  t.equal(commits.length, 3, 'one takeover, two ends')
})

t.test('turns off: messages interleave, and the answer goes to whoever wrote last', async (t) => {
  const rig = people({ limits: { turns: { mode: 'off', quietMs: 10_000, timeoutMs: 300_000, maxMs: 900_000 } } })
  rig.wechat('ann', 'from ann')
  rig.wechat('bob', 'from bob')
  accept(rig)
  t.equal(rig.transmits.length, 2)
  answer(rig, 'f1', 'to whom?')
  t.strictSame(sent(rig), ['bob: to whom?'])
})

t.test('in a group each writer is a conversation of its own', async (t) => {
  const rig = people()
  rig.wechat('ann', 'from ann', { group_id: 'g1' })
  rig.wechat('ann', 'from ann, privately')
  t.equal(rig.transmits.length, 1)
  run(rig, 'f1', 'about the group')
  t.equal(rig.transmits.length, 2)
})

t.test('who waited longest is next, and nobody has the word twice while another one waits', async (t) => {
  const rig = people()
  rig.wechat('ann', 'a1')
  accept(rig)
  rig.wechat('bob', 'b1')
  rig.pass(5 * MINUTE - 1)
  rig.activity('tool')
  rig.pass(1)
  rig.wechat('ann', 'a2')
  rig.pass(1)
  rig.wechat('cyd', 'c1')
  answer(rig, 'f1', 'to ann')
  rig.activity('idle')
  const order = [rig.lastTransmit().messageId]
  for (let i = 0; i < 2; i += 1) {
    run(rig, `g${i}`, 'answer')
    order.push(rig.lastTransmit().messageId)
  }
  t.strictSame(order, ['m2', 'm4', 'm3'], 'Bob, then Cyd, then Ann again, though hers is older than Cyd\'s')
})

t.test('after a lost link an old snapshot says nothing any more', async (t) => {
  const rig = people()
  rig.wechat('ann', 'from ann')
  accept(rig)
  rig.activity('tool')
  rig.leave(LINK)
  rig.open('link_2' as LinkId)
  rig.pass(5 * MINUTE)
  t.strictSame(ends(rig), ['timeout'])
})

t.test('a standing snapshot counts as work for turns.max', async (t) => {
  const rig = people()
  rig.wechat('ann', 'from ann')
  accept(rig)
  rig.activity('tool')
  rig.pass(20 * MINUTE - 1)
  t.strictSame(ends(rig), [])
  rig.pass(1)
  t.strictSame(ends(rig), ['timeout'])
})

t.test('a lost ack after an idle: what may have been taken keeps the turn', async (t) => {
  for (const refusedFirst of [false, true]) {
    const rig = people()
    rig.wechat('ann', 'one')
    const bob = rig.wechat('bob', 'from bob')
    accept(rig)
    rig.activity('thinking')
    rig.activity('idle')
    rig.wechat('ann', 'two')
    if (refusedFirst) rig.reject(rig.lastTransmit(), 'channel_busy', true)
    rig.pass(MINUTE)
    t.notOk(texts(rig).includes(bob), 'xAgent may be at work for Ann')
    answer(rig, 'f1', 'to two')
    t.strictSame(sent(rig), ['ann: to two'])
  }
})

/** Bob has been answered, Ann's message has been transmitted: a final before she is accepted may be about anything. */
function transmittedAfterBob(): Rig {
  const rig = people()
  rig.wechat('bob', 'from bob')
  run(rig, 'f0', 'to bob')
  rig.wechat('ann', 'from ann')
  return rig
}

const NOBODY = 'pkt_f1 rejected no_reply_target false'

t.test('a refusal that comes after the ack timeout is a rejection all the same', async (t) => {
  const rig = transmittedAfterBob()
  const first = rig.lastTransmit()
  rig.pass(30_000)
  rig.reject(first, 'channel_busy', true)
  rig.final('f1', 'about something else')
  t.equal(rig.answers.at(-1), NOBODY)
})

t.test('an error that answers a transmission says that it was not taken', async (t) => {
  const rig = transmittedAfterBob()
  rig.event({ type: 'error_answered', replyTo: rig.lastTransmit().packetId, code: 'internal_error' })
  rig.final('f1', 'about something else')
  t.equal(rig.answers.at(-1), NOBODY)
})

t.test('what was refused in an earlier turn stays refused in the next, until it is accepted', async (t) => {
  const rig = people()
  rig.wechat('bob', 'from bob')
  run(rig, 'f0', 'to bob')
  rig.wechat('ann', 'one')
  rig.wechat('ann', 'two')
  accept(rig)
  rig.reject(rig.lastTransmit(), 'channel_busy', true)
  rig.activity('thinking')
  answer(rig, 'f2', 'to one')
  rig.activity('idle')
  t.strictSame(ends(rig), ['certain', 'certain'])
  rig.pass(1_000)
  t.equal(rig.lastTransmit().cause, 'busy', 'it has opened a turn of its own')
  rig.final('f1', 'about something else')
  t.equal(rig.answers.at(-1), NOBODY)
  accept(rig)
  answer(rig, 'f3', 'to two')
  t.strictSame(sent(rig), ['bob: to bob', 'ann: to one', 'ann: to two'])
})

t.test('of two messages of one millisecond one expires: the other keeps its target', async (t) => {
  const rig = people({ limits: { ttlMs: 10 * MINUTE, window: 2 } })
  for (const text of ['one', 'two']) rig.wechat('ann', text)
  t.equal(rig.lastTransmit().messageId, 'm2')
  accept(rig)
  rig.pass(10 * MINUTE + 30_000)
  t.strictSame(rig.ended.map(({ outcome, messageId }) => `${messageId} ${outcome}`), ['m2 accepted', 'm1 expired'])
  answer(rig, 'f1', 'late, to two')
  t.match(rig.of('invoke').map((call) => call.arguments), [{ context_token: 'ctx-ann-2' }])
})

t.test('a record from before there were turns is taken over: who wrote, and the latest target', async (t) => {
  const before = people()
  before.wechat('ann', 'from ann')
  const [turn] = before.records<{ conversations: [string, number][]; target: unknown }>('turn')
  const store = new Map([...before.store].filter(([key]) => !key.startsWith('inbound ')))
  for (const key of store.keys()) if (key.startsWith('turn ')) store.set(key, { v: 1, channelId: 'cch_1', conversations: turn?.conversations.map(([key]) => key), target: turn?.target })
  const rig = new Rig({ preset: 'wechat', store, now: before.now })
  answer(rig, 'f1', 'a reminder')
  t.strictSame(sent(rig), ['ann: a reminder'])
})
