/**
 * To whom an answer is bound (DESIGN §4 Turns rules 3, 7 and 9), under agents that send anything at any time. The oracle
 * knows only what can be seen from outside (who wrote, what was transmitted, acked, ended) and is written from the rules.
 */
import t from 'tap'
import fc from 'fast-check'
import { Rig } from '../helper/channel-rig.js'
import type { Effect, Transmit } from '../../src/core/effect.js'
import type { LinkId } from '../../src/protocol/ids.js'

const NAMES = ['ann', 'bob', 'cyd', 'dan', 'eve']
/** The preset's target_ttl. */
const TARGET_TTL_MS = 86_400_000

/** `retention.ttl`: short, so that messages expire in the middle of a story. */
const TTL_MS = 1_200_000

type Status = 'accepted' | 'duplicate' | 'temporary' | 'busy' | 'permanent'
type Act =
  | { readonly act: 'write'; readonly who: number }
  | { readonly act: 'ack'; readonly back: number; readonly status: Status }
  | { readonly act: 'error'; readonly code: string }
  /** `age`: 0 is a new id, else one of those sent before. */
  | { readonly act: 'final' | 'delta'; readonly age: number }
  | { readonly act: 'activity'; readonly status: 'thinking' | 'tool' | 'idle' }
  | { readonly act: 'tool'; readonly how: 'sent' | 'temporary' | 'permanent' | 'in_doubt' }
  | { readonly act: 'drop' | 'open' | 'restart' | 'connector_away' | 'connector_back' }
  | { readonly act: 'replay'; readonly which: number }
  | { readonly act: 'pass'; readonly ms: number }

const age = fc.constantFrom(0, 0, 0, 1, 1, 2, 4)
const acts: fc.Arbitrary<Act> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ act: fc.constant('write' as const), who: fc.nat(4) }) },
  { weight: 10, arbitrary: fc.record({ act: fc.constant('ack' as const), back: fc.constantFrom(0, 0, 0, 0, 1, 2), status: fc.constantFrom<Status>('accepted', 'accepted', 'accepted', 'duplicate', 'temporary', 'busy', 'permanent') }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('error' as const), code: fc.constantFrom('channel_not_open', 'internal_error', 'invalid_packet') }) },
  { weight: 8, arbitrary: fc.record({ act: fc.constant('final' as const), age }) },
  { weight: 3, arbitrary: fc.record({ act: fc.constant('delta' as const), age }) },
  { weight: 5, arbitrary: fc.record({ act: fc.constant('activity' as const), status: fc.constantFrom('thinking', 'tool', 'idle', 'idle' as const) }) },
  { weight: 8, arbitrary: fc.record({ act: fc.constant('tool' as const), how: fc.constantFrom('sent', 'sent', 'sent', 'temporary', 'permanent', 'in_doubt' as const) }) },
  { weight: 4, arbitrary: fc.record({ act: fc.constantFrom('drop', 'open', 'open', 'restart', 'connector_away', 'connector_back', 'connector_back' as const) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('replay' as const), which: fc.nat(3) }) },
  { weight: 5, arbitrary: fc.record({ act: fc.constant('pass' as const), ms: fc.constantFrom(20, 600, 11_000, 31_000, 60_000, 300_000, 600_000) }) },
)

interface Written { readonly who: string; readonly at: number }
interface Place { readonly id: string; refused: boolean }

/** The rules, applied to what was seen. A binding is the message that is answered, or null for nobody. */
class Oracle {
  readonly messages = new Map<string, Written>()
  /** By outbound id. Two are possible where a restart came before anything but deltas, or a refusal at sight, was known of it. */
  readonly bindings = new Map<string, { readonly possible: Set<string | null>; certain: boolean; recorded: boolean }>()
  /** Whose turn it is, and its transmitted messages that have not ended unaccepted. */
  #turn: { readonly who: string; places: Place[] } | null = null
  #last: { readonly who: string; readonly how: string; readonly answered: string | null } | null = null
  /** The last rejection or acceptance of each pending message. */
  readonly #refused = new Set<string>()
  readonly #pending = new Set<string>()
  readonly #expired = new Set<string>()
  #latest: string | null = null

  wrote(id: string, who: string, at: number): void {
    this.messages.set(id, { who, at })
    this.#pending.add(id)
    this.#latest = id
  }

  /** A rejection, for now: final is what ends it. */
  refused(id: string): void {
    if (!this.#pending.has(id)) return
    this.#refused.add(id)
    const place = this.#turn?.places.find((one) => one.id === id)
    if (place !== undefined) place.refused = true
  }

  saw(effect: Effect): void {
    if (effect.type === 'transmit') this.#transmitted(effect.messageId)
    else if (effect.type === 'ended' && effect.direction === 'inbound') this.#ended(effect.messageId, effect.outcome)
    else if (effect.type === 'turn_ended') this.#turnEnded(effect.end)
    else if (effect.type === 'invoke') this.#called(effect)
  }

  /** Rule 1: with none open, a message that is transmitted opens a turn; nobody else's is transmitted in it. */
  #transmitted(id: string): void {
    const who = this.#who(id)
    this.#turn ??= { who, places: [] }
    if (this.#turn.who !== who) throw new Error(`${id} was transmitted in the turn of ${this.#turn.who}`)
    if (!this.#turn.places.some((place) => place.id === id)) this.#turn.places.push({ id, refused: this.#refused.has(id) })
  }

  #ended(id: string, outcome: string): void {
    this.#pending.delete(id)
    const taken = outcome === 'accepted' || outcome === 'duplicate'
    if (outcome === 'expired') this.#expired.add(id)
    if (this.#turn === null) return
    if (!taken) this.#turn.places = this.#turn.places.filter((place) => place.id !== id)
    for (const place of this.#turn.places) if (place.id === id) place.refused = false
  }

  #turnEnded(how: string): void {
    if (this.#turn === null) throw new Error('a turn has ended that nobody saw')
    this.#last = { who: this.#turn.who, how, answered: this.#answered() }
    this.#turn = null
  }

  #called({ messageId, arguments: args }: Extract<Effect, { type: 'invoke' }>): void {
    const answered = String(args['context_token']).replace('ctx-', '')
    if (args['recipient_ref'] !== this.#who(answered)) throw new Error(`${messageId} went to ${String(args['recipient_ref'])} with the token of ${answered}`)
    const possible = this.bindings.get(messageId)?.possible
    if (possible?.has(answered) !== true) throw new Error(`${messageId} answered ${answered}, but is bound to ${[...(possible ?? ['?'])].map(String).join(' or ')}`)
  }

  /** The id is seen, as a delta or a final: bound now if it has no binding, or if nobody can know whether it still has. */
  sight(outboundId: string, now: number): void {
    const known = this.bindings.get(outboundId) ?? { possible: new Set(), certain: false, recorded: false }
    this.bindings.set(outboundId, known)
    if (!known.certain) known.possible.add(this.#binding(now))
    known.certain = true
  }

  restart(): void {
    for (const binding of this.bindings.values()) if (!binding.recorded) binding.certain = false
  }

  /** Rule 3, else rule 7; the preset has no default target. */
  #binding(now: number): string | null {
    const answered = this.#answered()
    if (answered !== null) return this.#alive(answered, now)
    const last = this.#last
    const late = last !== null && (last.how === 'likely' || last.how === 'timeout') && (this.#turn === null || this.#turn.who === last.who)
    return (late ? this.#alive(last.answered, now) : null) ?? (this.#everybody() === 1 ? this.#alive(this.#latest, now) : null)
  }

  /** The turn's latest transmitted message whose last ack is not a rejection. */
  #answered(): string | null {
    return this.#turn?.places.findLast(({ refused }) => !refused)?.id ?? null
  }

  /** Rule 9: a target lives for `target_ttl`, that of an expired message not at all. */
  #alive(id: string | null, now: number): string | null {
    return id !== null && !this.#expired.has(id) && now < (this.messages.get(id)?.at ?? 0) + TARGET_TTL_MS ? id : null
  }

  #everybody(): number {
    return new Set([...this.messages.values()].map(({ who }) => who)).size
  }

  #who(id: string): string {
    return this.messages.get(id)?.who ?? '?'
  }
}

class Story {
  readonly oracle = new Oracle()
  rig: Rig
  calls = 0
  #seen = 0
  #links = 0
  #runs = 0
  /** Outbound ids with the moment they were first sent, and the deltas of each. */
  readonly #sent: { readonly id: string; readonly at: number; deltas: number }[] = []
  readonly #limits = { outboundQueue: 2, ttlMs: TTL_MS }

  constructor(private readonly people: number) {
    this.rig = new Rig({ preset: 'wechat', limits: this.#limits })
    this.#open()
  }

  play(act: Act): void {
    // Whatever is due by now has happened before.
    this.rig.pass(0)
    this.#observe()
    this.#act(act)
    this.#observe()
  }

  #act(act: Act): void {
    const { rig } = this
    switch (act.act) {
      case 'write': return this.#write(NAMES[act.who % this.people] ?? 'ann')
      case 'ack': return this.#ack(act.back, act.status)
      case 'error': return this.#error(act.code)
      case 'final': return this.#final(act.age)
      case 'delta': return this.#delta(act.age)
      case 'activity': return this.#up ? rig.activity(act.status) : undefined
      case 'tool': return this.#tool(act.how)
      case 'drop': return rig.channel.link === null ? undefined : rig.leave(rig.channel.link.id)
      case 'open': return this.#open()
      case 'restart': return this.#restart()
      case 'connector_away': return rig.event({ type: 'legacy_changed', open: false })
      case 'connector_back': return rig.event({ type: 'legacy_changed', open: true })
      case 'replay': return this.#replay(act.which)
      case 'pass': return rig.pass(act.ms)
    }
  }

  get #up(): boolean {
    return this.rig.channel.link !== null
  }

  #write(who: string): void {
    const id = `m${this.oracle.messages.size + 1}_${who}`
    this.oracle.wrote(id, who, this.rig.now)
    this.rig.wechat(who, `from ${who}`, { message_id: id, context_token: `ctx-${id}` })
  }

  /** Any transmission of this run may be acked, at any time. */
  #ack(back: number, status: Status): void {
    const transmit = this.rig.transmits.at(-1 - back)
    if (transmit === undefined || !this.#up) return
    if (status === 'accepted' || status === 'duplicate') return this.rig.ack(transmit, { status })
    if (status !== 'permanent') this.oracle.refused(transmit.messageId)
    this.rig.reject(transmit, status === 'busy' ? 'channel_busy' : 'later', status !== 'permanent')
  }

  /** An `error` that answers what is in flight says that it was not taken, as a rejection does. */
  #error(code: string): void {
    const flying = this.#flying()
    if (flying === null) return
    if (code !== 'invalid_packet') this.oracle.refused(flying.messageId)
    this.rig.event({ type: 'error_answered', replyTo: flying.packetId, code })
  }

  #flying(): Transmit | null {
    const [message] = this.rig.channel.inFlight
    return this.rig.transmits.findLast(({ seq }) => seq === message?.seq) ?? null
  }

  #final(age: number): void {
    if (!this.#up) return
    const { id } = this.#outbound(age)
    const packetId = `pkt_${this.#runs}_${this.rig.effects.length}`
    this.rig.final(id, `words of ${id}`, packetId)
    const busy = this.rig.answers.includes(`${packetId} rejected busy true`)
    const binding = this.oracle.bindings.get(id)
    if (!busy && binding !== undefined) binding.recorded = true
  }

  #delta(age: number): void {
    if (!this.#up) return
    const outbound = this.#outbound(age)
    outbound.deltas += 1
    this.rig.delta(outbound.id, outbound.deltas, 'x')
  }

  /** A new id, or one that the gateway still knows: it remembers each that long. */
  #outbound(age: number): { readonly id: string; deltas: number } {
    const { now } = this.rig
    const known = age === 0 ? undefined : this.#sent.at(-age)
    const outbound = known !== undefined && now < known.at + TTL_MS ? known : { id: `f${this.#sent.length + 1}`, at: now, deltas: 0 }
    if (outbound !== known) this.#sent.push(outbound)
    this.oracle.sight(outbound.id, now)
    return outbound
  }

  #tool(how: Extract<Act, { act: 'tool' }>['how']): void {
    const job = this.rig.channel.line.find(({ phase }) => phase === 'running')
    if (job !== undefined) this.rig.answerStep(job.final.messageId, job.step, { class: how })
  }

  #replay(which: number): void {
    const letters = this.rig.deadLetters().filter(({ direction }) => direction === 'outbound')
    const letter = letters.at(-1 - which)
    if (letter !== undefined) this.rig.replay(letter)
  }

  /** Another link may open the channel while the first still has it. */
  #open(): void {
    this.#links += 1
    this.rig.open(`link_${this.#links}` as LinkId)
  }

  #restart(): void {
    const { shared, store, now } = this.rig
    this.#runs += 1
    this.rig = new Rig({ preset: 'wechat', limits: this.#limits, store: new Map(store), now })
    Object.assign(this.rig.shared, { nextSeq: Math.max(this.rig.shared.nextSeq, shared.nextSeq), nextDeadLetter: shared.nextDeadLetter, run: `run${this.#runs + 1}` })
    this.#seen = 0
    this.oracle.restart()
  }

  #observe(): void {
    for (; this.#seen < this.rig.effects.length; this.#seen += 1) {
      const effect = this.rig.effects[this.#seen] as Effect
      if (effect.type === 'invoke') this.calls += 1
      this.oracle.saw(effect)
    }
  }
}

t.test('whatever an agent does, an answer goes to whom it was bound at first sight, or to nobody', async (t) => {
  let calls = 0
  let nobody = 0
  fc.assert(fc.property(fc.integer({ min: 2, max: 5 }), fc.array(acts, { minLength: 20, maxLength: 150, size: '+1' }), (people, steps) => {
    const story = new Story(people)
    for (const step of steps) story.play(step)
    calls += story.calls
    nobody += [...story.oracle.bindings.values()].filter(({ possible }) => possible.size === 1 && possible.has(null)).length
  }), { numRuns: 3_000 })
  t.ok(calls > 6_000, `${calls} calls`)
  t.ok(nobody > 3_000, `${nobody} ids that were bound to nobody`)
})
