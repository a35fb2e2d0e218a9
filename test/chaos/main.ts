/** `npm run chaos`: a seeded run for a given time; ends with a table, or with one JSON object. Exit code 1 when something is wrong. */
import { parseArgs } from 'node:util'
import { NO_REDIS } from '../helper/redis-server.js'
import { chaos } from './chaos.js'

const { values } = parseArgs({
  options: { seed: { type: 'string', default: '1' }, seconds: { type: 'string', default: '60' }, channels: { type: 'string', default: '10' }, rate: { type: 'string', default: '100' }, json: { type: 'boolean', default: false } },
})
const whole = (name: 'seed' | 'seconds' | 'channels' | 'rate'): number => {
  const value = Number(values[name])
  if (!Number.isSafeInteger(value) || value < 1) {
    console.error(`--${name}: must be a whole number from 1`)
    process.exit(2)
  }
  return value
}
if (NO_REDIS !== false) {
  console.error(`${NO_REDIS}: install it to run this`)
  process.exit(2)
}
const result = await chaos({ seed: whole('seed'), seconds: whole('seconds'), channels: whole('channels'), rate: whole('rate'), say: (line) => console.error(line) })
const { wrong, ...figures } = result
for (const line of wrong.slice(0, 50)) console.error(`WRONG  ${line}`)
if (values.json) console.log(JSON.stringify(figures))
else console.table(figures)
process.exit(wrong.length > 0 ? 1 : 0)
