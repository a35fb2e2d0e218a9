/** Random schedules of the core: whatever happens in whatever order, a message has one end and the books balance. */
import t from 'tap'
import fc from 'fast-check'
import { Rig } from '../helper/channel-rig.js'
import type { LinkId, MessageId } from '../../src/protocol/ids.js'

type Act =
  | { readonly act: 'push'; readonly id: number; readonly words: number }
  | { readonly act: 'ack'; readonly back: number; readonly status: 'accepted' | 'duplicate' | 'permanent' | 'temporary' | 'busy' }
  | { readonly act: 'open' | 'leave' | 'full' | 'drain' | 'connector_away' | 'connector_back' | 'restart' | 'replay' }
  | { readonly act: 'pass'; readonly ms: number }
  | { readonly act: 'final'; readonly id: number; readonly parts: number }
  | { readonly act: 'answer'; readonly how: 'sent' | 'temporary' | 'permanent' | 'in_doubt' }

const acts: fc.Arbitrary<Act> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ act: fc.constant('push' as const), id: fc.integer({ min: 0, max: 12 }), words: fc.integer({ min: 0, max: 2 }) }) },
  { weight: 4, arbitrary: fc.record({ act: fc.constant('ack' as const), back: fc.integer({ min: 0, max: 3 }), status: fc.constantFrom('accepted', 'duplicate', 'permanent', 'temporary', 'busy' as const) }) },
  { weight: 3, arbitrary: fc.record({ act: fc.constantFrom('open', 'leave', 'full', 'drain', 'connector_away', 'connector_back', 'restart', 'replay' as const) }) },
  { weight: 3, arbitrary: fc.record({ act: fc.constant('pass' as const), ms: fc.constantFrom(10, 700, 31_000, 61_000) }) },
  { weight: 3, arbitrary: fc.record({ act: fc.constant('final' as const), id: fc.integer({ min: 0, max: 5 }), parts: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 4, arbitrary: fc.record({ act: fc.constant('answer' as const), how: fc.constantFrom('sent', 'temporary', 'permanent', 'in_doubt' as const) }) },
)

const LIMITS = { ttlMs: 300_000, maxMessages: 4, window: 1, maxAttempts: 0 }

/** One conversation; many, each with targets of its own; many of which only the last one can be answered. */
const PRESETS = ['telegram', 'wechat', 'feishu'] as const
type Preset = (typeof PRESETS)[number]
const NAMES = ['ann', 'bob', 'cyd']

/** Everything that happened over the restarts of one schedule. */
class Story {
  rig: Rig
  readonly past: Rig[] = []

  constructor(private readonly preset: Preset = 'telegram') {
    this.rig = new Rig({ preset, limits: LIMITS })
  }

  get rigs(): readonly Rig[] {
    return [...this.past, this.rig]
  }

  restart(): void {
    this.past.push(this.rig)
    this.rig = new Rig({ preset: this.preset, limits: LIMITS, store: new Map(this.rig.store), now: this.rig.now })
    this.rig.shared.nextSeq = Math.max(...this.rigs.map(({ shared }) => shared.nextSeq))
    this.rig.shared.nextDeadLetter = Math.max(...this.rigs.map(({ shared }) => shared.nextDeadLetter))
  }

  play(step: Act): void {
    const { rig } = this
    switch (step.act) {
      case 'push': return this.#push(String(step.id), NAMES[step.id % NAMES.length] ?? '', ['', 'words', 'other words'][step.words] ?? '')
      case 'ack': return this.#ack(step)
      case 'open': return rig.open(`link_${rig.effects.length}` as LinkId)
      case 'leave': return rig.channel.link === null ? undefined : rig.leave(rig.channel.link.id)
      case 'full': {
        const flying = [...rig.channel.inFlight][0]
        return flying === undefined ? undefined : rig.event({ type: 'send_failed', seq: flying.seq, reason: 'full', cause: null })
      }
      case 'drain': return rig.channel.link === null ? undefined : rig.event({ type: 'drained', link: rig.channel.link.id })
      case 'connector_away': return rig.event({ type: 'legacy_changed', open: false })
      case 'connector_back': return rig.event({ type: 'legacy_changed', open: true })
      case 'restart': return this.restart()
      case 'replay': return this.#replay()
      case 'pass': return rig.pass(step.ms)
      case 'final': return rig.final(`f${step.id}`, Array.from({ length: step.parts }, (_, i) => String(i).repeat(4_000)).join('\n\n'), `pkt_${rig.effects.length}`)
      case 'answer': return this.#answer(step.how)
    }
  }

  #push(id: string, who: string, words: string): void {
    if (this.preset === 'telegram') this.rig.push(words, { message_id: id })
    else this.rig[this.preset](who, words, { message_id: id })
  }

  #replay(): void {
    const letter = this.rig.deadLetters().findLast(({ direction }) => direction === 'outbound')
    if (letter !== undefined) this.rig.replay(letter)
  }

  #ack({ back, status }: Extract<Act, { act: 'ack' }>): void {
    const transmit = this.rig.transmits.at(-1 - back)
    if (transmit === undefined) return
    if (status === 'accepted' || status === 'duplicate') return this.rig.ack(transmit, { status })
    this.rig.reject(transmit, status === 'busy' ? 'channel_busy' : 'code', status !== 'permanent')
  }

  #answer(how: Extract<Act, { act: 'answer' }>['how']): void {
    const job = this.rig.channel.line.find(({ phase }) => phase === 'running')
    if (job !== undefined) this.rig.answerStep(job.final.messageId, job.step, { class: how })
  }
}

for (const preset of PRESETS) t.test(`every push and every final ends once, and what has not ended is pending (${preset})`, async (t) => {
  fc.assert(fc.property(fc.array(acts, { minLength: 1, maxLength: 80, size: 'max' }), (steps) => {
    const story = new Story(preset)
    for (const step of steps) {
      story.play(step)
      if (story.rig.channel.inFlight.size > 1) throw new Error('more in flight than the window allows')
    }
    const count = (direction: string) => ({
      received: story.rigs.reduce((sum, rig) => sum + [...rig.of('received'), ...rig.of('replayed')].filter((effect) => effect.direction === direction).length, 0),
      ended: story.rigs.reduce((sum, rig) => sum + rig.ended.filter((effect) => effect.direction === direction && effect.inLedger).length, 0),
    })
    const { channel } = story.rig
    const inbound = count('inbound')
    if (inbound.received !== inbound.ended + channel.bySeq.size) throw new Error(`inbound: ${JSON.stringify(inbound)}, pending ${channel.bySeq.size}`)
    const running = channel.line.filter((job) => (job.record !== null || job.ending !== null) && !channel.deferred.has(job.final.messageId)).length
    const outbound = count('outbound')
    if (outbound.received !== outbound.ended + channel.deferred.size + running) throw new Error(`outbound: ${JSON.stringify(outbound)}, pending ${channel.deferred.size} + ${running}`)
    if (story.rig.records('inbound').length !== channel.bySeq.size) throw new Error('the store holds other messages than the state')
  }), { numRuns: 2_000 })
  t.pass('2000 schedules')
})

for (const preset of PRESETS) t.test(`no part of a final is called twice, unless the connector said that it was certainly not sent (${preset})`, async (t) => {
  fc.assert(fc.property(fc.array(acts, { minLength: 1, maxLength: 80, size: 'max' }), (steps) => {
    const story = new Story(preset)
    const called = new Map<string, number>()
    const refused = new Map<string, number>()
    for (const step of steps) {
      const running = story.rig.channel.line.find(({ phase }) => phase === 'running')
      if (step.act === 'answer' && step.how === 'temporary' && running !== undefined) {
        const name = `${running.final.messageId}/${running.step}/${running.final.contentHash}`
        refused.set(name, (refused.get(name) ?? 0) + 1)
      }
      story.play(step)
    }
    for (const rig of story.rigs) {
      for (const call of rig.of('invoke')) {
        const name = `${call.messageId}/${call.step}`
        called.set(name, (called.get(name) ?? 0) + 1)
      }
    }
    const accepted = story.rigs.flatMap((rig) => rig.of('answer')).filter(({ verdict }) => verdict.status === 'accepted').map(({ messageId }) => messageId as MessageId)
    for (const [name, times] of called) {
      const [id] = name.split('/')
      // A final that expired from memory (ttl) may come anew; within one ttl a part is called once more only after a refusal.
      const lives = story.rigs.flatMap((rig) => rig.ended).filter(({ messageId, direction, inLedger }) => messageId === id && direction === 'outbound' && inLedger).length + 1
      const again = [...refused].filter(([refusedName]) => refusedName.startsWith(`${name}/`)).reduce((sum, [, n]) => sum + n, 0)
      if (times > lives + again) throw new Error(`${name} was called ${times} times, refused ${again}, lives ${lives}`)
    }
    const twice = accepted.filter((id, index) => accepted.indexOf(id) !== index)
    for (const id of twice) {
      const ends = story.rigs.flatMap((rig) => rig.ended).filter(({ messageId, outcome, direction }) => direction === 'outbound' && messageId === id && outcome === 'accepted').length
      if (ends < accepted.filter((other) => other === id).length) throw new Error(`${id} was acked accepted more often than it was accepted`)
    }
  }), { numRuns: 1_000 })
  t.pass('1000 schedules')
})

t.test('messages of a channel are first transmitted in the order of their pushes', async (t) => {
  fc.assert(fc.property(fc.array(acts, { minLength: 1, maxLength: 60, size: 'max' }), (steps) => {
    const story = new Story()
    for (const step of steps) if (step.act !== 'restart') story.play(step)
    const firsts = story.rig.transmits.filter(({ cause }, index, all) => cause === null && all.findIndex((other) => other.seq === story.rig.transmits[index]?.seq) === index).map(({ seq }) => seq)
    if (firsts.some((seq, index) => index > 0 && seq < (firsts[index - 1] ?? 0))) throw new Error(`order ${firsts.join(' ')}`)
  }), { numRuns: 1_000 })
  t.pass('1000 schedules')
})
