import t from 'tap'
import { outageFrom, retryAfter, type Outage, type Retry } from '../../src/legacy/reconnect.js'
import { LEGACY_TIMING } from '../../src/legacy/timing.js'

/** Delays of the next dials, each failing at once. */
function delays(count: number, options: { denied?: boolean; random?: number; startMs?: number } = {}): Retry[] {
  const { denied = false, random = 1, startMs = 0 } = options
  let outage: Outage = outageFrom(0)
  let now = startMs
  return Array.from({ length: count }, () => {
    const retry = retryAfter(outage, { now, denied, random }, LEGACY_TIMING)
    outage = retry.outage
    now += retry.delayMs
    return retry
  })
}

t.test('dials every 100 ms for 5 minutes', async (t) => {
  const retries = delays(3_000)
  t.ok(retries.every(({ delayMs, backingOff }) => delayMs === 100 && !backingOff))
  t.equal(retries.at(-1)?.outage.attempts, 3_000)
})

t.test('backs off after 5 minutes, up to 10 s', async (t) => {
  const retries = delays(6, { startMs: 300_000 })
  t.same(retries.map(({ delayMs }) => delayMs), [1_000, 2_000, 4_000, 8_000, 10_000, 10_000])
  t.ok(retries.every(({ backingOff }) => backingOff))
})

t.test('jitter shortens a backoff by at most half', async (t) => {
  t.same(delays(5, { startMs: 300_000, random: 0 }).map(({ delayMs }) => delayMs), [500, 1_000, 2_000, 4_000, 5_000])
})

t.test('a denied dial goes straight to the backoff', async (t) => {
  t.same(delays(2, { denied: true }).map(({ delayMs, backingOff }) => [delayMs, backingOff]), [[1_000, true], [2_000, true]])
})

t.test('a connector that stays away for a month is still dialled every 10 s at the latest', async (t) => {
  t.ok(delays(300_000, { startMs: 300_000 }).every(({ delayMs }) => delayMs <= 10_000))
})
