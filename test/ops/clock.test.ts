import t from 'tap'
import { systemClock } from '../../src/ops/clock.js'

t.test('wall time is a whole number of Unix ms', async (t) => {
  const now = systemClock().wall()
  t.ok(Number.isSafeInteger(now))
  t.ok(Math.abs(now - Date.now()) < 1_000)
})

t.test('fires a timer once', async () => {
  await new Promise<void>((resolve) => systemClock().timer(1, resolve))
})

t.test('a cancelled timer does not fire, and one longer than the runtime can take neither fires at once nor keeps the process', async (t) => {
  const clock = systemClock()
  clock.timer(0, () => t.fail('cancelled'))()
  const cancel = clock.timer(60 * 24 * 3_600_000, () => t.fail('60 days have not gone by'))
  await new Promise<void>((resolve) => clock.timer(5, resolve))
  cancel()
})
