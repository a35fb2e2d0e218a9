/** A short seeded run of the chaos suite; longer ones: `npm run chaos`. */
import t from 'tap'
import { NO_REDIS } from '../helper/redis-server.js'
import { chaos } from './chaos.js'
import { Random } from './random.js'

t.test('twelve seconds of faults: everything that was committed has exactly one end', { skip: NO_REDIS, timeout: 240_000 }, async (t) => {
  const said: string[] = []
  const result = await chaos({ seed: 7, seconds: 12, channels: 4, rate: 50, say: (line) => said.push(line) })
  t.strictSame(result.wrong, [], said.join('\n'))
  t.match(result, { lost: 0, duplicated: 0, tool_calls_doubled: 0, misdirected: 0, accepted_not_sent: 0, ledger_imbalance: 0 })
  t.ok(result.faults >= 2 && result.delivered > 100, `${result.faults} faults, ${result.delivered} delivered`)
})

t.test('a seed decides the plan', async (t) => {
  const plan = (seed: number): number[] => { const random = new Random(seed); return Array.from({ length: 20 }, () => random.between(1, 1_000)) }
  t.strictSame(plan(1), plan(1))
  t.notSame(plan(1), plan(2))
  t.ok(plan(3).every((n) => n >= 1 && n <= 1_000))
})
