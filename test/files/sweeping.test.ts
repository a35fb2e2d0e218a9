import t from 'tap'
import { sweepRegularly } from '../../src/files/sweeping.js'
import { ManualClock } from '../helper/manual-clock.js'

t.test('sweeps again and again, counted from the end of a sweep, until it is stopped', async (t) => {
  const clock = new ManualClock()
  const errors: unknown[] = []
  let sweeps = 0
  const store = { sweep: async () => { if ((sweeps += 1) === 2) throw new Error('says the test') } }
  const stop = sweepRegularly(store, clock, 1_000, { error: (...line: unknown[]) => errors.push(line) } as never)
  for (const expected of [1, 2, 3]) {
    clock.advance(999)
    t.equal(sweeps, expected - 1)
    clock.advance(1)
    t.equal(sweeps, expected)
    await new Promise(setImmediate)
  }
  t.equal(errors.length, 1, 'a failed sweep is told and is not the last one')
  stop()
  clock.advance(10_000)
  t.equal(sweeps, 3)
})
