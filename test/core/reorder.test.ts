/** The reorder window (DESIGN §4 Order): the target's time decides, and nobody waits longer than the window for it. */
import t from 'tap'
import fc from 'fast-check'
import { LIMITS, Rig, T0 } from '../helper/channel-rig.js'

const WINDOW_MS = 250
const NO_TURNS = { turns: { ...LIMITS.turns, mode: 'off' as const } }

interface Arrival { readonly id: string; readonly who: string; readonly createdAt: number }

/** Plays the arrivals at their moments and lets the rest of the window pass; every transmission is accepted at once. */
class Reader {
  readonly arrivedAt = new Map<string, number>()
  readonly sentAt = new Map<string, number>()
  #seen = 0

  constructor(readonly rig: Rig, private readonly answers = false) {
    rig.open()
  }

  push({ id, who, createdAt }: Arrival): void {
    this.arrivedAt.set(id, this.rig.now)
    this.rig.feishu(who, `text ${id}`, { message_id: id, create_time_ms: createdAt })
    this.#acceptAll()
  }

  /** Millisecond by millisecond, so that the moment of each transmission is seen. */
  pass(ms: number): void {
    for (let i = 0; i < ms; i += 1) {
      this.rig.pass(1)
      this.#acceptAll()
    }
  }

  get order(): string[] {
    return [...this.sentAt.keys()]
  }

  get longestDelay(): number {
    return Math.max(...[...this.sentAt].map(([id, at]) => at - (this.arrivedAt.get(id) ?? 0)))
  }

  #acceptAll(): void {
    for (let next = this.rig.transmits[this.#seen]; next !== undefined; next = this.rig.transmits[this.#seen]) {
      this.#seen += 1
      this.sentAt.set(next.messageId, this.rig.now)
      this.rig.ack(next, { status: 'accepted' })
      if (this.answers) this.#run(`f${this.#seen}`)
    }
  }

  /** One whole run of the agent. */
  #run(id: string): void {
    this.rig.activity('thinking')
    this.rig.final(id, 'answer')
    const job = this.rig.channel.line.find(({ phase }) => phase === 'running')
    if (job !== undefined) this.rig.answerStep(id, 0, { class: 'sent' })
    this.rig.activity('idle')
  }
}

const feishu = (limits: Partial<typeof LIMITS> = NO_TURNS): Rig => new Rig({ preset: 'feishu', limits })

/** `count` messages written 2 ms apart; each arrives at most `late` places after its own. */
function shuffled(lateness: readonly number[]): Arrival[] {
  return lateness
    .map((late, at) => ({ id: `om_${at}`, who: 'ann', createdAt: T0 - 1_000 + 2 * at, place: at + late }))
    .sort((a, b) => a.place - b.place)
}

const written = (count: number): string[] => Array.from({ length: count }, (_, at) => `om_${at}`)

t.test('100 quick messages, handed on in whatever order: they are transmitted in the order in which they were written', async (t) => {
  const lateness = fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 100, maxLength: 100 })
  let mended = 0
  fc.assert(fc.property(lateness, fc.integer({ min: 0, max: 2 }), (late, gapMs) => {
    const reader = new Reader(feishu())
    const arrivals = shuffled(late)
    for (const arrival of arrivals) {
      reader.push(arrival)
      reader.pass(gapMs)
    }
    reader.pass(WINDOW_MS)
    if (reader.order.join() !== written(100).join()) throw new Error(`transmitted: ${reader.order.join(' ')}`)
    if (reader.longestDelay > WINDOW_MS) throw new Error(`one waited ${reader.longestDelay} ms`)
    mended += arrivals.map(({ id }) => id).join() === written(100).join() ? 0 : 1
  }), { numRuns: 100 })
  t.ok(mended > 90, `${mended} of 100 had to be put in order`)
})

t.test('a message alone leaves when the window is over', async (t) => {
  const rig = feishu()
  rig.open()
  rig.feishu('ann', 'one')
  rig.pass(WINDOW_MS - 1)
  t.equal(rig.transmits.length, 0)
  rig.pass(1)
  t.equal(rig.transmits.length, 1)
})

t.test('what belongs before one that has waited leaves with it', async (t) => {
  const reader = new Reader(feishu())
  reader.push({ id: 'om_2', who: 'ann', createdAt: T0 - 10 })
  reader.pass(200)
  reader.push({ id: 'om_1', who: 'ann', createdAt: T0 - 20 })
  reader.push({ id: 'om_3', who: 'ann', createdAt: T0 })
  reader.pass(50)
  t.strictSame(reader.order, ['om_1', 'om_2'])
  reader.pass(199)
  t.strictSame(reader.order, ['om_1', 'om_2'])
  reader.pass(1)
  t.strictSame(reader.order, ['om_1', 'om_2', 'om_3'])
})

t.test('one that comes after its place has gone is not held for nothing', async (t) => {
  const reader = new Reader(feishu())
  reader.push({ id: 'om_2', who: 'ann', createdAt: T0 - 10 })
  reader.pass(WINDOW_MS)
  reader.push({ id: 'om_1', who: 'ann', createdAt: T0 - 20 })
  t.strictSame(reader.order, ['om_2', 'om_1'])
})

t.test('of one moment: in order of arrival', async (t) => {
  const reader = new Reader(feishu())
  for (const id of ['om_1', 'om_2', 'om_3']) reader.push({ id, who: 'ann', createdAt: T0 })
  reader.pass(WINDOW_MS)
  t.strictSame(reader.order, ['om_1', 'om_2', 'om_3'])
})

t.test('a push whose time is 0 is placed by its arrival', async (t) => {
  const reader = new Reader(feishu())
  reader.push({ id: 'om_1', who: 'ann', createdAt: T0 - 5 })
  reader.pass(5)
  reader.push({ id: 'om_3', who: 'ann', createdAt: 0 })
  reader.pass(5)
  reader.push({ id: 'om_4', who: 'ann', createdAt: T0 + 10 })
  reader.push({ id: 'om_2', who: 'ann', createdAt: T0 + 1 })
  reader.pass(WINDOW_MS)
  t.strictSame(reader.order, ['om_1', 'om_2', 'om_3', 'om_4'])
})

t.test('the hold extends no retention', async (t) => {
  const rig = feishu({ ...NO_TURNS, ttlMs: 300, ackTimeoutMs: 1_000 })
  rig.feishu('ann', 'one')
  rig.pass(200)
  t.match(rig.records('inbound'), [{ expiresAt: T0 + 300 }])
  rig.pass(99)
  t.equal(rig.ended.length, 0)
  rig.pass(1)
  t.match(rig.ended, [{ outcome: 'expired', ageMs: 300 }])
})

t.test('one that expires while it is held is not transmitted, and leaves nothing behind', async (t) => {
  const rig = feishu({ ...NO_TURNS, ttlMs: 200 })
  rig.open()
  rig.feishu('ann', 'one')
  rig.pass(WINDOW_MS)
  t.match(rig.ended, [{ outcome: 'expired' }])
  t.strictSame(rig.transmits, [])
  t.strictSame(rig.channel.held, [])
})

t.test('time without a link counts: after an outage nothing is held again', async (t) => {
  const rig = feishu()
  rig.feishu('ann', 'one')
  rig.pass(WINDOW_MS)
  rig.open()
  t.equal(rig.transmits.length, 1)
})

t.test('after a restart the rest of the window is kept, and the order', async (t) => {
  const before = feishu()
  before.open()
  const two = before.feishu('ann', 'two', { create_time_ms: T0 - 10 })
  before.pass(100)
  const one = before.feishu('ann', 'one', { create_time_ms: T0 - 20 })
  const rig = new Rig({ preset: 'feishu', limits: NO_TURNS, store: new Map(before.store), now: before.now })
  rig.open()
  rig.pass(149)
  t.equal(rig.transmits.length, 0)
  rig.pass(1)
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  t.strictSame(rig.transmits.map(({ messageId }) => messageId), [one, two])
})

t.test('connectors that keep order are not delayed', async (t) => {
  for (const preset of ['generic', 'telegram', 'wechat']) {
    const rig = new Rig({ preset })
    rig.open()
    rig.push('one', { from: 'ann', message_type: 1, message_state: 2, create_time_ms: T0 - 1 })
    t.equal(rig.transmits.length, 1, preset)
    rig.ack(rig.lastTransmit(), { status: 'accepted' })
    rig.push('two', { from: 'ann', message_type: 1, message_state: 2, create_time_ms: T0 - 2 })
    t.equal(rig.transmits.length, 2, 'by arrival')
  }
})

t.test('two chats take turns, each in the order in which it was written', async (t) => {
  const reader = new Reader(feishu({}), true)
  const lateness = Array.from({ length: 40 }, (_, at) => (at * 7) % 13)
  for (const arrival of shuffled(lateness)) {
    reader.push({ ...arrival, who: Number(arrival.id.slice(3)) % 2 === 0 ? 'ann' : 'bob' })
    reader.pass(2)
  }
  reader.pass(WINDOW_MS + 60_000)
  const evens = written(40).filter((_, at) => at % 2 === 0)
  t.strictSame(reader.order.filter((id) => evens.includes(id)), evens)
  t.strictSame(reader.order.filter((id) => !evens.includes(id)), written(40).filter((id) => !evens.includes(id)))
})

t.test('a chat whose message is held does not take the turn from one that is ready', async (t) => {
  const reader = new Reader(feishu({}), true)
  reader.push({ id: 'om_1', who: 'ann', createdAt: T0 - 10 })
  reader.pass(100)
  reader.push({ id: 'om_2', who: 'bob', createdAt: T0 - 5 })
  reader.pass(150)
  t.strictSame(reader.order, ['om_1'])
  reader.pass(100)
  t.strictSame(reader.order, ['om_1', 'om_2'])
  t.strictSame(reader.rig.of('turn_ended').map(({ end }) => end), ['certain', 'certain'])
})

t.test('a message that has ended releases nothing before its time', async (t) => {
  const rig = new Rig({ preset: 'feishu', limits: { ...NO_TURNS, maxMessages: 1 } })
  rig.open()
  rig.feishu('ann', 'later', { message_id: 'om_later', create_time_ms: T0 - 10 })
  rig.pass(WINDOW_MS - 50)
  rig.feishu('ann', 'earlier', { message_id: 'om_earlier', create_time_ms: T0 - 20 })
  t.match(rig.ended, [{ messageId: 'om_later', outcome: 'evicted' }])
  rig.pass(100)
  t.strictSame(rig.transmits, [], 'its own window is not over')
  rig.pass(WINDOW_MS - 100)
  t.match(rig.transmits, [{ messageId: 'om_earlier' }])
})
