import t from 'tap'
import { WaitingLine } from '../../src/legacy/waiting-line.js'
import { ManualClock } from '../helper/manual-clock.js'

t.test('serves in order of arrival, what is put back first', async (t) => {
  const line = new WaitingLine<string>(new ManualClock(), 1_000, () => t.fail('nothing expires'))
  for (const item of ['a', 'b', 'c']) line.push(item)
  t.equal(line.shift(), 'a')
  line.pushFront('a')
  t.same([line.shift(), line.shift(), line.shift(), line.shift()], ['a', 'b', 'c', null])
})

t.test('who waits too long leaves the line', async (t) => {
  const clock = new ManualClock()
  const expired: string[] = []
  const line = new WaitingLine<string>(clock, 1_000, (item) => expired.push(item))
  line.push('a')
  clock.advance(600)
  line.push('b')
  clock.advance(400)
  t.same(expired, ['a'])
  t.equal(line.shift(), 'b')
  clock.advance(10_000)
  t.same(expired, ['a'], 'who was served does not expire')
})

t.test('an emptied line has no timer left', async (t) => {
  const clock = new ManualClock()
  const line = new WaitingLine<string>(clock, 1_000, () => t.fail('cleared'))
  line.push('a')
  t.same(line.clear(), ['a'])
  t.equal(clock.pending, 0)
  t.equal(line.length, 0)
})
