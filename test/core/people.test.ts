/**
 * Two to five people in one channel, an agent that answers them one run after the other, and everything that can go wrong in
 * between: whatever happens, each answer goes to whom it is meant for, and everybody gets the word (DESIGN §4 Turns).
 */
import t from 'tap'
import fc from 'fast-check'
import { LINK, Rig } from '../helper/channel-rig.js'
import type { Effect, Transmit } from '../../src/core/effect.js'
import type { LinkId } from '../../src/protocol/ids.js'

const NAMES = ['ann', 'bob', 'cyd', 'dan', 'eve']
/** The longest that the agent is silent in the middle of a run: well within turns.timeout. */
const LONGEST_SILENCE_MS = 200_000

type Act =
  | { readonly act: 'write'; readonly who: number }
  | { readonly act: 'agent' | 'lose_ack' | 'busy' | 'drop' | 'reopen' | 'restart' | 'redeliver' | 'connector_away' | 'connector_back' | 'delta' | 'replay' | 'sign_in' }
  | { readonly act: 'tool'; readonly how: 'sent' | 'temporary' | 'permanent' | 'in_doubt' }
  | { readonly act: 'pass'; readonly ms: number }

export const acts: fc.Arbitrary<Act> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ act: fc.constant('write' as const), who: fc.integer({ min: 0, max: 4 }) }) },
  { weight: 20, arbitrary: fc.record({ act: fc.constant('agent' as const) }) },
  { weight: 8, arbitrary: fc.record({ act: fc.constant('tool' as const), how: fc.constantFrom('sent', 'sent', 'sent', 'temporary', 'permanent', 'in_doubt' as const) }) },
  { weight: 4, arbitrary: fc.record({ act: fc.constant('pass' as const), ms: fc.constantFrom(50, 3_000, 31_000, 60_000) }) },
  { weight: 4, arbitrary: fc.record({ act: fc.constantFrom('lose_ack', 'busy', 'drop', 'reopen', 'reopen', 'restart', 'redeliver', 'redeliver', 'connector_away', 'connector_back', 'delta', 'replay', 'sign_in' as const) }) },
)

interface Final { readonly id: string; readonly who: string; sent: boolean; over: boolean; deltas: number }

/** An agent that works off its messages one after the other and shows what it does. */
class Agent {
  /** Messages taken, with the person who wrote each. */
  readonly queue: string[] = []
  readonly known = new Set<string>()
  readonly finals: Final[] = []
  run: { readonly who: string; stage: number } | null = null
  busyAt = 0
}

export class Story {
  readonly agent = new Agent()
  readonly writers = new Map<string, string>()
  readonly past: Rig[] = []
  /** Which account each context token belongs to; accounts are counted. */
  readonly accounts = new Map<string, number>()
  account = 0
  /** Turns that were begun under earlier accounts: with a new one everybody is new. */
  turnsBefore = 0
  strayed: string | null = null
  /** Person who had each turn, and when it began and ended; `ended` is Infinity while it runs. */
  readonly turns: { readonly who: string; readonly began: number; ended: number }[] = []
  rig: Rig
  #links = 1
  #written = 0
  #lost = new Set<string>()

  constructor(private readonly people: number) {
    this.rig = new Rig({ preset: 'wechat' })
    this.rig.open()
  }

  get invokes(): Extract<Effect, { type: 'invoke' }>[] {
    return [...this.past, this.rig].flatMap((rig) => rig.of('invoke'))
  }

  play(act: Act): void {
    const before = this.invokes.length
    this.#act(act)
    const stray = this.invokes.slice(before).find(({ arguments: args }) => this.accounts.get(String(args['context_token'])) !== this.account)
    if (stray !== undefined) this.strayed = `${stray.messageId} was called for an earlier account`
    this.#observe()
  }

  #act(act: Act): void {
    switch (act.act) {
      case 'write': this.#write(NAMES[act.who % this.people] ?? 'ann'); break
      case 'agent': this.#agent(false); break
      case 'lose_ack': this.#agent(true); break
      case 'busy': { const flying = this.#flying(); if (flying !== null && !this.agent.known.has(flying.messageId)) this.rig.reject(flying, 'channel_busy', true); break }
      case 'drop': if (this.#up()) this.rig.leave(this.rig.channel.link?.id ?? LINK); break
      case 'reopen': this.#reopen(); break
      case 'restart': this.#restart(); break
      case 'redeliver': this.#redeliver(); break
      case 'sign_in': this.account += 1; this.turnsBefore = this.turns.length; this.rig.event({ type: 'rebound' }); break
      case 'connector_away': this.rig.event({ type: 'legacy_changed', open: false }); break
      case 'connector_back': this.rig.event({ type: 'legacy_changed', open: true }); break
      case 'delta': this.#delta(); break
      case 'replay': { const letter = this.rig.deadLetters().find(({ direction, target }) => direction === 'outbound' && target !== null); if (letter !== undefined) this.rig.replay(letter); break }
      case 'tool': this.#tool(act.how); break
      case 'pass': this.#pass(act.ms); break
    }
  }

  #write(who: string): void {
    this.#written += 1
    const id = `m${this.#written}_${who}`
    this.writers.set(id, who)
    const token = `ctx-${who}-${this.#written}`
    this.accounts.set(token, this.account)
    this.rig.wechat(who, `from ${who}`, { message_id: id, context_token: token })
  }

  /** The agent's next step: take what was delivered, else go on with its run, else begin the next. */
  #agent(loseAck: boolean): void {
    if (!this.#up()) return
    const { agent, rig } = this
    const flying = this.#flying()
    if (flying !== null) return this.#take(flying, loseAck)
    if (agent.run === null) return this.#begin()
    agent.busyAt = rig.now
    agent.run.stage += 1
    if (agent.run.stage === 1) return rig.activity('thinking')
    if (agent.run.stage === 2) return this.#final(agent.run.who)
    if (agent.run.stage === 3) return rig.activity('tool')
    agent.run = null
    rig.activity('idle')
    if (agent.queue.length > 0) this.#begin()
  }

  /** Accepted, whether or not the ack arrives; a known one is a duplicate. */
  #take(flying: Transmit, loseAck: boolean): void {
    const { agent } = this
    const known = agent.known.has(flying.messageId)
    if (!known) agent.queue.push(this.writers.get(flying.messageId) ?? '?')
    agent.known.add(flying.messageId)
    agent.busyAt = this.rig.now
    if (loseAck) this.#lost.add(flying.packetId)
    else this.rig.ack(flying, { status: known ? 'duplicate' : 'accepted' })
  }

  #begin(): void {
    const who = this.agent.queue.shift()
    if (who === undefined) return
    this.agent.run = { who, stage: 1 }
    this.agent.busyAt = this.rig.now
    this.rig.activity('thinking')
  }

  #final(who: string): void {
    const begun = this.agent.finals.find((one) => !one.sent && one.who === who)
    const final = begun ?? { id: `f${this.agent.finals.length}_${who}`, who, sent: true, over: false, deltas: 0 }
    final.sent = true
    if (begun === undefined) this.agent.finals.push(final)
    this.rig.final(final.id, `to ${who}`, `pkt_${this.rig.effects.length}`)
  }

  #delta(): void {
    const { run } = this.agent
    if (!this.#up() || run === null) return
    let final = this.agent.finals.find((one) => !one.sent && one.who === run.who)
    if (final === undefined) this.agent.finals.push(final = { id: `f${this.agent.finals.length}_${run.who}`, who: run.who, sent: false, over: false, deltas: 0 })
    final.deltas += 1
    this.agent.busyAt = this.rig.now
    this.rig.delta(final.id, final.deltas, 'x')
  }

  /** What was not answered for good comes again with the same id. */
  #redeliver(): void {
    if (!this.#up()) return
    for (const final of this.agent.finals) {
      if (final.sent && !this.#isOver(final)) this.rig.final(final.id, `to ${final.who}`, `pkt_${this.rig.effects.length}`)
    }
  }

  #isOver(final: Final): boolean {
    return [...this.past, this.rig].some((rig) => rig.of('answer').some(({ messageId, verdict }) => messageId === final.id && (verdict.status !== 'rejected' || !verdict.retryable)))
  }

  #tool(how: Extract<Act, { act: 'tool' }>['how']): void {
    const job = this.rig.channel.line.find(({ phase }) => phase === 'running')
    if (job !== undefined) this.rig.answerStep(job.final.messageId, job.step, { class: how })
  }

  /** In the middle of a run the agent is never silent for long, nor after it has taken a message. */
  #pass(ms: number): void {
    const { agent, rig } = this
    const working = agent.run !== null || agent.queue.length > 0
    if (this.#up() && working && rig.now + ms > agent.busyAt + LONGEST_SILENCE_MS) this.#agent(false)
    rig.pass(ms)
  }

  #reopen(): void {
    if (this.#up()) return
    this.#links += 1
    this.agent.busyAt = this.rig.now
    this.rig.open(`link_${this.#links}` as LinkId)
  }

  #restart(): void {
    const { now, store, shared } = this.rig
    this.past.push(this.rig)
    this.rig = new Rig({ preset: 'wechat', store: new Map(store), now })
    this.rig.shared.nextSeq = Math.max(this.rig.shared.nextSeq, shared.nextSeq)
    this.rig.shared.nextDeadLetter = shared.nextDeadLetter
    this.#reopen()
  }

  #up(): boolean {
    return this.rig.channel.link !== null
  }

  #flying(): Transmit | null {
    const [message] = this.rig.channel.inFlight
    const transmit = message === undefined ? undefined : this.rig.transmits.findLast(({ seq }) => seq === message.seq)
    return transmit === undefined || this.#lost.has(transmit.packetId) ? null : transmit
  }

  #observe(): void {
    const running = this.turns.at(-1)
    const { turn } = this.rig.channel
    const who = turn === null ? null : (this.writers.get(turn.messages[0]?.messageId ?? '') ?? running?.who ?? '?')
    if (running !== undefined && running.ended === Infinity && (turn === null || turn.number !== this.turns.length)) running.ended = this.rig.now
    if (turn !== null && who !== null && turn.number > this.turns.length) this.turns.push({ who, began: this.rig.now, ended: Infinity })
  }
}

const stories = fc.tuple(fc.integer({ min: 2, max: 5 }), fc.array(acts, { minLength: 40, maxLength: 250, size: '+1' }))

t.test('no answer ever goes to somebody else, redelivered and replayed ones included', async (t) => {
  let calls = 0
  fc.assert(fc.property(stories, ([people, steps]) => {
    const story = new Story(people)
    for (const step of steps) story.play(step)
    if (story.strayed !== null) throw new Error(story.strayed)
    for (const { messageId, arguments: args } of story.invokes) {
      const [, who] = messageId.split('_')
      if (args['recipient_ref'] !== who) throw new Error(`${messageId} went to ${String(args['recipient_ref'])}`)
      if (!String(args['context_token']).startsWith(`ctx-${who}-`)) throw new Error(`${messageId} with the token ${String(args['context_token'])}`)
    }
    calls += story.invokes.length
  }), { numRuns: Number(process.env['NO_PROPS'] === undefined ? 1_000 : 1) })
  t.ok(calls > 4_000, `${calls} calls`)
})

t.test('everybody who waits has the word between two turns of one', async (t) => {
  let turns = 0
  fc.assert(fc.property(stories, ([people, steps]) => {
    const story = new Story(people)
    for (const step of steps) {
      const before = story.turns.length
      story.play(step)
      if (story.turns.length > before) checkFair(story)
    }
    turns += story.turns.length
  }), { numRuns: Number(process.env['NO_PROPS'] === undefined ? 1_000 : 1) })
  t.ok(turns > 2_000, `${turns} turns`)
})

/** The turn that has just begun: nobody else who waited since before its owner's last turn ended was passed over. */
function checkFair({ turns: all, turnsBefore, rig, writers }: Story): void {
  const turns = all.slice(turnsBefore)
  const now = turns.at(-1)
  const earlier = turns.findLastIndex(({ who }, index) => who === now?.who && index < turns.length - 1)
  if (now === undefined || earlier === -1) return
  const between = new Set(turns.slice(earlier + 1, -1).map(({ who }) => who))
  for (const message of rig.channel.bySeq.values()) {
    const who = writers.get(message.messageId) ?? '?'
    if (who === now.who || between.has(who) || message.takenAt >= (turns[earlier]?.ended ?? 0)) continue
    throw new Error(`${who} has waited since ${message.takenAt}, and ${now.who} has the word again`)
  }
}
