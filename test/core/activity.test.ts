/** Activity (v2 §8; DESIGN §5): "is typing" is shown to the person that is answered, and to nobody for longer than that. */
import t from 'tap'
import { LIMITS, LINK, Rig, type RigOptions } from '../helper/channel-rig.js'
import type { LinkId } from '../../src/protocol/ids.js'

const SECOND = 1_000

/** Ann and Bob have written; xAgent has taken Ann's message. */
function people(options: RigOptions = {}): Rig {
  const rig = new Rig({ preset: 'wechat', ...options })
  rig.open()
  rig.wechat('ann', 'from ann')
  rig.wechat('bob', 'from bob')
  accept(rig)
  return rig
}

const accept = (rig: Rig): void => rig.ack(rig.lastTransmit(), { status: 'accepted' })
/** Who was shown what, in order. */
const shown = (rig: Rig): string[] => rig.of('typing').map(({ target, on }) => `${String(target.arguments['to'])} ${on ? 'on' : 'off'}`)

function answer(rig: Rig, id: string): void {
  rig.final(id, 'answer')
  rig.answerStep(id, 0, { class: 'sent' })
}

t.test('thinking and tool show it to the person that is answered, with the token of that message', async (t) => {
  for (const status of ['thinking', 'tool'] as const) {
    const rig = people()
    rig.activity(status)
    t.strictSame(rig.of('typing'), [{ type: 'typing', on: true, target: { tool: 'wechat_typing', arguments: { to: 'ann', context_token: 'ctx-ann-1' }, flag: 'typing' } }])
  }
})

t.test('repeated snapshots renew it at most every 5 s', async (t) => {
  const rig = people()
  rig.activity('thinking')
  rig.pass(4_999)
  rig.activity('tool')
  t.strictSame(shown(rig), ['ann on'])
  rig.pass(1)
  rig.activity('thinking')
  t.strictSame(shown(rig), ['ann on', 'ann on'])
  rig.activity('thinking')
  t.strictSame(shown(rig), ['ann on', 'ann on'], 'the 5 s begin anew')
})

t.test('a flood of snapshots makes one call every 5 s', async (t) => {
  const rig = people()
  for (let i = 0; i < 1_000; i += 1) {
    rig.activity('thinking')
    rig.pass(20)
  }
  t.equal(rig.of('typing').length, 4)
})

const ends: Readonly<Record<string, (rig: Rig) => void>> = {
  idle: (rig) => rig.activity('idle'),
  'a final': (rig) => rig.final('f1', 'answer'),
  'the first delta': (rig) => rig.delta('f1', 1, 'An'),
  'a lost link': (rig) => rig.leave(LINK),
  'another link that has opened the channel': (rig) => rig.open('link_2' as LinkId),
  'a link that says that the channel is not open': (rig) => {
    rig.wechat('ann', 'two')
    rig.event({ type: 'error_answered', replyTo: rig.lastTransmit().packetId, code: 'channel_not_open' })
  },
  '30 s without a new snapshot': (rig) => rig.pass(30 * SECOND),
}

for (const [what, happens] of Object.entries(ends)) {
  t.test(`${what} hides it, once`, async (t) => {
    const rig = people()
    rig.activity('thinking')
    happens(rig)
    t.strictSame(shown(rig), ['ann on', 'ann off'])
    rig.pass(60 * SECOND)
    t.strictSame(shown(rig), ['ann on', 'ann off'])
  })
}

t.test('the 30 s count from the latest snapshot, renewed or not', async (t) => {
  const rig = people()
  rig.activity('thinking')
  rig.pass(4 * SECOND)
  rig.activity('thinking')
  rig.pass(30 * SECOND - 1)
  t.strictSame(shown(rig), ['ann on'])
  rig.pass(1)
  t.strictSame(shown(rig), ['ann on', 'ann off'])
})

t.test('a snapshot after the timeout shows it again', async (t) => {
  const rig = people()
  rig.activity('tool')
  rig.pass(30 * SECOND)
  rig.activity('tool')
  t.strictSame(shown(rig), ['ann on', 'ann off', 'ann on'])
})

t.test('where nothing is shown, nothing is hidden', async (t) => {
  const rig = people()
  rig.activity('idle')
  rig.delta('f1', 1, 'An')
  answer(rig, 'f1')
  rig.leave()
  t.strictSame(shown(rig), [])
})

t.test('only the first delta of a stream hides it: a later one follows a new snapshot', async (t) => {
  const rig = people()
  rig.delta('f1', 1, 'An')
  rig.activity('tool')
  rig.delta('f1', 2, 'swer')
  rig.delta('f1', 1, 'An')
  t.strictSame(shown(rig), ['ann on'])
})

t.test('another person\'s turn: it is hidden from the first and shown to the second', async (t) => {
  const rig = people()
  rig.activity('thinking')
  answer(rig, 'f1')
  rig.activity('idle')
  rig.activity('thinking')
  accept(rig)
  t.strictSame(shown(rig), ['ann on', 'ann off', 'bob on'])
})

t.test('a late run for Ann, then Bob has the word: the next snapshot is for him', async (t) => {
  const rig = new Rig({ preset: 'wechat' })
  rig.open()
  rig.wechat('ann', 'from ann')
  accept(rig)
  rig.pass(LIMITS.turns.timeoutMs)
  rig.activity('thinking')
  rig.wechat('bob', 'from bob')
  accept(rig)
  rig.activity('thinking')
  t.strictSame(shown(rig), ['ann on', 'ann off', 'bob on'])
})

t.test('it ends with the turn, though Bob\'s run shows nothing', async (t) => {
  const rig = new Rig({ preset: 'wechat' })
  rig.open()
  rig.wechat('ann', 'from ann')
  rig.wechat('bob', 'from bob')
  rig.activity('thinking')
  t.strictSame(shown(rig), ['ann on'], 'its ack may be lost')
  rig.reject(rig.lastTransmit(), 'not_allowed', false)
  t.strictSame(rig.of('turn_ended').map(({ end }) => end), ['unaccepted'])
  t.strictSame(shown(rig), ['ann on', 'ann off'])
})

t.test('a turn that ends by timeout leaves nothing on', async (t) => {
  // So short that the turn ends before the timeout of the typing does, and the usual times.
  for (const turns of [{ ...LIMITS.turns, timeoutMs: 10 * SECOND, maxMs: 10 * SECOND }, LIMITS.turns]) {
    const rig = people({ limits: { turns } })
    rig.activity('thinking')
    rig.pass(30 * SECOND)
    t.strictSame(shown(rig), ['ann on', 'ann off'])
    rig.pass(turns.maxMs + turns.timeoutMs - 30 * SECOND)
    t.strictSame(rig.of('turn_ended').map(({ end }) => end), ['timeout'])
    t.strictSame(shown(rig), ['ann on', 'ann off'])
  }
})

t.test('nobody to be answered: nothing is shown', async (t) => {
  const rig = new Rig({ preset: 'wechat' })
  rig.open()
  rig.activity('thinking')
  rig.wechat('ann', 'from ann')
  rig.reject(rig.lastTransmit(), 'channel_busy', true)
  rig.wechat('bob', 'from bob')
  rig.activity('thinking')
  t.strictSame(shown(rig), [], 'Ann\'s message was refused, so somebody else is worked for')
})

t.test('a connector without a typing tool: no effect', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('hello')
  for (const status of ['thinking', 'tool', 'idle'] as const) rig.activity(status)
  t.strictSame(shown(rig), [])
})

t.test('it blocks and changes no message', async (t) => {
  const story = (withActivity: boolean): unknown => {
    // Preset telegram: no turns, so that activity can have no other effect than typing.
    const rig = new Rig({ overrides: { typing: { tool: 'typing', arguments: { to: '{chat_id}', typing: '{typing}' } } } })
    const activity = (): void => { if (withActivity) rig.activity('thinking') }
    rig.open()
    activity()
    rig.push('one')
    activity()
    rig.push('two')
    accept(rig)
    activity()
    rig.delta('f1', 1, 'to')
    activity()
    answer(rig, 'f1')
    activity()
    rig.pass(40 * SECOND)
    activity()
    accept(rig)
    answer(rig, 'f2')
    t.equal(rig.of('typing').length > 0, withActivity)
    return rig.effects.filter(({ type }) => type !== 'typing')
  }
  t.strictSame(story(true), story(false))
})
