import t from 'tap'
import { RateLimit } from '../../src/xagent/rate-limit.js'

t.test("gives one second's worth at once, then refills evenly and no further", async (t) => {
  const rate = new RateLimit(4, 0)
  const taken = (now: number, tries: number): number => Array.from({ length: tries }, () => rate.take(now)).filter(Boolean).length
  t.equal(taken(0, 10), 4)
  t.equal(taken(249, 10), 0)
  t.equal(taken(250, 10), 1)
  t.equal(taken(1_250, 10), 4)
  t.equal(taken(60_000, 10), 4, 'a long silence saves nothing up')
})
