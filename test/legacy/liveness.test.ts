import t from 'tap'
import { Liveness } from '../../src/legacy/liveness.js'
import { LEGACY_TIMING } from '../../src/legacy/timing.js'
import { ManualClock } from '../helper/manual-clock.js'

function judge(judged: (silentMs: number) => boolean = () => true): { clock: ManualClock; liveness: Liveness; seen: string[] } {
  const clock = new ManualClock()
  const seen: string[] = []
  const liveness = new Liveness(LEGACY_TIMING, clock, { ping: () => seen.push('ping'), dead: () => seen.push('dead'), judged })
  liveness.start()
  return { clock, liveness, seen }
}

t.test('pings after 15 s of silence and gives up 15 s later', async (t) => {
  const { clock, seen } = judge()
  clock.advance(14_999)
  t.same(seen, [])
  clock.advance(1)
  t.same(seen, ['ping'])
  clock.advance(14_999)
  t.same(seen, ['ping'])
  clock.advance(1)
  t.same(seen, ['ping', 'dead'])
  t.equal(clock.pending, 0)
})

t.test('does not ping a link that hears something', async (t) => {
  const { clock, liveness, seen } = judge()
  for (let i = 0; i < 10; i += 1) {
    clock.advance(10_000)
    liveness.received()
  }
  t.same(seen, [])
})

t.test('any frame after a ping proves life', async (t) => {
  const { clock, liveness, seen } = judge()
  clock.advance(29_999)
  liveness.received()
  clock.advance(14_999)
  t.same(seen, ['ping'])
})

t.test('silence that is excused neither pings nor kills, and counts once the excuse ends', async (t) => {
  let excused = true
  const { clock, seen } = judge(() => !excused)
  clock.advance(120_000)
  t.same(seen, [])
  excused = false
  clock.advance(15_000)
  t.same(seen, ['ping'])
  clock.advance(15_000)
  t.same(seen, ['ping', 'dead'])
})

t.test('a call that starts after a ping puts the verdict off', async (t) => {
  let excused = false
  const { clock, liveness, seen } = judge(() => !excused)
  clock.advance(15_000)
  excused = true
  clock.advance(60_000)
  t.same(seen, ['ping'])
  excused = false
  liveness.received()
  clock.advance(14_000)
  t.same(seen, ['ping'])
})

t.test('a stopped judge has no timer left', async (t) => {
  const { clock, liveness } = judge()
  liveness.stop()
  t.equal(clock.pending, 0)
})
