/** Deltas (v2 §6; DESIGN §5): checked and bounded, never needed, never sent. */
import t from 'tap'
import fc from 'fast-check'
import { LIMITS, Rig } from '../helper/channel-rig.js'
import { sweepDeltas } from '../../src/core/delta.js'
import type { ChannelLimits } from '../../src/core/state.js'

/** What each delta costs besides its text. */
const FIXED_BYTES = 64
const TTL = LIMITS.deltas.ttlMs

function channel(limits: Partial<ChannelLimits> = {}): Rig {
  const rig = new Rig({ limits })
  rig.open()
  rig.push('hello')
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  return rig
}

const refusals = (rig: Rig): string[] => rig.of('refuse').map(({ to, code }) => `${to.packetId} ${code}`)
const ignored = (rig: Rig): number => rig.of('deviation').filter(({ reason }) => reason === 'delta_ignored').length
const cache = (rig: Rig): Rig['shared']['deltas'] => rig.shared.deltas

t.test('sequence from 1, contiguous: nothing is said about it, and nothing is sent', async (t) => {
  const rig = channel()
  for (const [at, text] of ['He', 'llo', ''].entries()) rig.delta('f1', at + 1, text)
  t.equal(cache(rig).streams.size, 1)
  t.equal(cache(rig).bytes, 5 + 3 * FIXED_BYTES)
  t.strictSame([refusals(rig), ignored(rig), rig.of('invoke').length, rig.of('answer').length], [[], 0, 0, 0])
})

t.test('a repeat with the same text is ignored, whichever delta it repeats', async (t) => {
  const rig = channel()
  for (const [sequence, text] of [[1, 'He'], [1, 'He'], [2, 'llo'], [1, 'He'], [2, 'llo'], [3, '!']] as const) rig.delta('f1', sequence, text)
  t.strictSame(refusals(rig), [])
  t.equal(ignored(rig), 0)
  t.equal(cache(rig).bytes, 6 + 3 * FIXED_BYTES)
})

t.test('a repeat with another text: one delta_sequence_conflict, and what follows is only counted', async (t) => {
  const rig = channel()
  rig.delta('f1', 1, 'He')
  rig.delta('f1', 1, 'She')
  rig.delta('f1', 1, 'It')
  rig.delta('f1', 2, 'llo')
  t.strictSame(refusals(rig), ['pkt_d_f1_1 delta_sequence_conflict'])
  t.equal(ignored(rig), 2)
  t.equal(cache(rig).bytes, 0)
})

t.test('a gap: one delta_sequence_gap, and what follows is only counted, the missing one too', async (t) => {
  const rig = channel()
  rig.delta('f1', 1, 'a')
  rig.delta('f1', 3, 'c')
  rig.delta('f1', 2, 'b')
  rig.delta('f1', 4, 'd')
  t.strictSame(refusals(rig), ['pkt_d_f1_3 delta_sequence_gap'])
  t.equal(ignored(rig), 2)
  t.equal(cache(rig).bytes, 0)
})

t.test('a stream that does not begin with 1 is a gap', async (t) => {
  const rig = channel()
  rig.delta('f1', 2, 'b')
  rig.delta('f1', 1, 'a')
  t.strictSame(refusals(rig), ['pkt_d_f1_2 delta_sequence_gap'])
  t.equal(ignored(rig), 1)
})

t.test('one stream says nothing about another', async (t) => {
  const rig = channel()
  rig.delta('f1', 1, 'a')
  rig.delta('f2', 1, 'a')
  rig.delta('f1', 5, 'e')
  rig.delta('f2', 2, 'b')
  t.strictSame(refusals(rig), ['pkt_d_f1_5 delta_sequence_gap'])
  t.equal(ignored(rig), 0)
  t.equal(cache(rig).bytes, 2 + 2 * FIXED_BYTES)
})

t.test('a discarded stream does not harm its final', async (t) => {
  const rig = channel()
  rig.delta('f1', 2, 'b')
  rig.final('f1', 'words')
  rig.answerStep('f1', 0, { class: 'sent' })
  t.strictSame(rig.calls, ['words'])
  t.strictSame(rig.answers, ['pkt_f1 accepted'])
})

t.test('a stream without a final ends by ttl, and its memory is free again', async (t) => {
  for (const limit of ['sweep', 'next delta'] as const) {
    const rig = channel()
    rig.delta('f1', 1, 'x'.repeat(1_000))
    rig.pass(TTL - 1)
    rig.delta('f1', 2, 'y')
    t.equal(cache(rig).bytes, 1_001 + 2 * FIXED_BYTES, 'a further delta does not make it live longer')
    rig.pass(1)
    if (limit === 'sweep') sweepDeltas(cache(rig), rig.now)
    else rig.delta('f2', 1, '')
    t.equal(cache(rig).bytes, limit === 'sweep' ? 0 : FIXED_BYTES, limit)
  }
})

t.test('ten thousand streams at once: count and bytes stay bounded, and what is given up is counted', async (t) => {
  for (const [deltas, kept] of [
    [{ ttlMs: TTL, maxStreams: 1_000, maxBytes: 2 ** 20 }, 1_000],
    // 100 streams fit: each costs its 136 bytes and the fixed part.
    [{ ttlMs: TTL, maxStreams: 1_000, maxBytes: 100 * (136 + FIXED_BYTES) }, 100],
  ] as const) {
    const rig = channel({ deltas })
    let ok = true
    for (let i = 0; i < 10_000; i += 1) {
      rig.delta(`f${i}`, 1, 'x'.repeat(136))
      ok &&= cache(rig).streams.size <= deltas.maxStreams && cache(rig).bytes <= deltas.maxBytes && cache(rig).bytes >= 0
    }
    t.ok(ok)
    t.equal(cache(rig).streams.size, kept)
    t.equal(rig.of('overflow').length, 10_000 - kept)
    t.strictSame(refusals(rig), [])
    rig.pass(TTL)
    rig.delta('late', 1, '')
    t.equal(cache(rig).bytes, FIXED_BYTES)
  }
})

t.test('the oldest stream gives way, and what follows of it is no error', async (t) => {
  const rig = channel({ deltas: { ttlMs: TTL, maxStreams: 2, maxBytes: 2 ** 20 } })
  for (const id of ['f1', 'f2', 'f3']) rig.delta(id, 1, 'a')
  for (const id of ['f1', 'f2', 'f3']) rig.delta(id, 2, 'b')
  t.strictSame(refusals(rig), [])
  t.equal(ignored(rig), 1, 'of f1')
})

t.test('streams that are over take no place from those that run', async (t) => {
  const rig = channel({ deltas: { ttlMs: TTL, maxStreams: 2, maxBytes: 2 ** 20 } })
  rig.delta('f1', 1, 'a')
  for (let i = 2; i < 20; i += 1) {
    rig.delta(`f${i}`, 1, 'a')
    rig.final(`f${i}`, 'words')
    rig.answerStep(`f${i}`, 0, { class: 'sent' })
  }
  rig.delta('f1', 2, 'b')
  t.strictSame([refusals(rig), ignored(rig), rig.of('overflow').length], [[], 0, 0])
})

t.test('a single delta larger than the cache ends its own stream', async (t) => {
  const rig = channel({ deltas: { ttlMs: TTL, maxStreams: 10, maxBytes: 1_000 } })
  rig.delta('f1', 1, 'x'.repeat(1_001))
  rig.delta('f1', 2, 'y')
  t.equal(cache(rig).bytes, 0)
  t.equal(rig.of('overflow').length, 1)
  t.equal(ignored(rig), 1)
})

t.test('bytes are bytes, not characters', async (t) => {
  const rig = channel()
  rig.delta('f1', 1, '你好')
  t.equal(cache(rig).bytes, 6 + FIXED_BYTES)
})

t.test('the final clears the stream, even one that is refused for now', async (t) => {
  const rig = channel({ outboundQueue: 1 })
  for (const id of ['f1', 'f2']) rig.delta(id, 1, 'a')
  rig.final('f1', 'one')
  t.equal(cache(rig).bytes, 1 + FIXED_BYTES)
  rig.final('f2', 'two')
  t.strictSame(rig.answers, ['pkt_f2 rejected busy true'])
  t.equal(cache(rig).bytes, 0)
})

t.test('deltas after the final are ignored, while it runs and when it has ended', async (t) => {
  for (const streamed of [true, false]) {
    const rig = channel()
    if (streamed) rig.delta('f1', 1, 'a')
    rig.final('f1', 'words')
    rig.delta('f1', streamed ? 2 : 1, 'b')
    rig.answerStep('f1', 0, { class: 'sent' })
    rig.delta('f1', streamed ? 3 : 1, 'c')
    rig.delta('f1', 7, 'd')
    t.strictSame(refusals(rig), [])
    t.equal(ignored(rig), 3)
    t.equal(cache(rig).bytes, 0)
    t.strictSame(rig.calls, ['words'])
  }
})

t.test('a late delta is no work of somebody else\'s turn', async (t) => {
  const rig = new Rig({ preset: 'wechat' })
  rig.open()
  rig.wechat('ann', 'from ann')
  rig.wechat('bob', 'from bob')
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  rig.final('f1', 'to ann')
  rig.answerStep('f1', 0, { class: 'sent' })
  rig.pass(LIMITS.turns.quietMs)
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  rig.delta('f1', 1, 'to')
  rig.pass(LIMITS.turns.timeoutMs)
  t.strictSame(rig.of('turn_ended').map(({ end }) => end), ['likely', 'timeout'])
})

t.test('a final never needs a delta', async (t) => {
  const rig = channel()
  rig.final('f1', 'words')
  rig.answerStep('f1', 0, { class: 'sent' })
  t.strictSame(rig.answers, ['pkt_f1 accepted'])
})

t.test('a delta is known by its channel, too', async (t) => {
  const rig = channel()
  rig.delta('f1', 1, 'a')
  const other = new Rig({}, 'cch_2')
  Object.assign(other.shared, { deltas: rig.shared.deltas })
  other.delta('f1', 1, 'b')
  t.strictSame(refusals(other), [])
  t.equal(cache(rig).streams.size, 2)
})

/** A stream of which the cache knows nothing any more may begin anew. */
function forget(rig: Rig, lives: Map<string, number>): void {
  const { streams, over } = cache(rig)
  const known = new Set([...streams.keys(), ...over.keys()].map((key) => key.split(' ')[1]))
  for (const id of lives.keys()) if (!known.has(id)) lives.delete(id)
}

const acts = fc.array(fc.oneof(
  { weight: 8, arbitrary: fc.record({ act: fc.constant('delta' as const), id: fc.integer({ min: 0, max: 6 }), sequence: fc.integer({ min: 1, max: 5 }), text: fc.constantFrom('', 'a', 'b', 'x'.repeat(300)) }) },
  // The next one of its stream, as an agent sends it.
  { weight: 8, arbitrary: fc.record({ act: fc.constant('next' as const), id: fc.integer({ min: 0, max: 6 }) }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('final' as const), id: fc.integer({ min: 0, max: 6 }) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('pass' as const), ms: fc.constantFrom(1_000, TTL / 2, TTL) }) },
), { minLength: 1, maxLength: 100, size: '+1' })

t.test('whatever deltas come: the cache is bounded, its books are right, and a stream is refused once', async (t) => {
  const deltas = { ttlMs: TTL, maxStreams: 3, maxBytes: 1_000 }
  let refused = 0
  fc.assert(fc.property(acts, (steps) => {
    const rig = channel({ deltas })
    /** Refusals since the cache has known the stream. */
    const lives = new Map<string, number>()
    const sent = new Map<string, number>()
    for (const step of steps) {
      if (step.act === 'pass') {
        rig.pass(step.ms)
        sweepDeltas(cache(rig), rig.now)
        forget(rig, lives)
        continue
      }
      const id = `f${step.id}`
      const before = rig.of('refuse').length
      if (step.act === 'final') {
        rig.final(id, 'words', `pkt_${rig.effects.length}`)
        rig.answerStep(id, 0, { class: 'sent' })
      } else {
        const sequence = step.act === 'next' ? (sent.get(id) ?? 0) + 1 : step.sequence
        sent.set(id, sequence)
        rig.delta(id, sequence, step.act === 'next' ? 'next' : step.text)
      }
      const now = rig.of('refuse').slice(before)
      if (now.length > 1 || (step.act === 'final' && now.length > 0)) throw new Error('one answer too many')
      lives.set(id, (lives.get(id) ?? 0) + now.length)
      if ((lives.get(id) ?? 0) > 1) throw new Error(`${id} was refused twice`)
      forget(rig, lives)
      const { streams, over, bytes } = cache(rig)
      const sum = [...streams.values()].reduce((all, { texts }) => all + texts.reduce((own, text) => own + text.length + FIXED_BYTES, 0), 0)
      if (bytes !== sum) throw new Error(`${bytes} bytes, but ${sum} in the streams`)
      if (streams.size > deltas.maxStreams || over.size > deltas.maxStreams || bytes > deltas.maxBytes) throw new Error('beyond the bounds')
    }
    refused += rig.of('refuse').length
  }), { numRuns: 1_000 })
  t.ok(refused > 1_000, `${refused} refusals`)
})
