import t from 'tap'
import { Occurrences } from '../../src/sim/occurrences.js'

interface Kinds {
  readonly number: number
}

void t.test('finds what already was, and waits for what was not yet', async (t) => {
  const events = new Occurrences<Kinds>()
  events.record('number', 1)
  t.equal(await events.waitFor('number'), 1)
  const second = events.waitFor('number', (n) => n === 2)
  events.record('number', 3)
  events.record('number', 2)
  t.equal(await second, 2)
  t.same(events.all('number'), [1, 3, 2])
})

void t.test('next does not count what already was', async (t) => {
  const events = new Occurrences<Kinds>()
  events.record('number', 1)
  const next = events.next('number')
  events.record('number', 2)
  t.equal(await next, 2)
})

void t.test('atLeast waits for a count', async (t) => {
  const events = new Occurrences<Kinds>()
  events.record('number', 1)
  const two = events.atLeast('number', 2)
  events.record('number', 2)
  t.same(await two, [1, 2])
  t.same(await events.atLeast('number', 1), [1])
})

void t.test('a wait that ends without its event says which one', async (t) => {
  await t.rejects(new Occurrences<Kinds>().waitFor('number', undefined, 1), /no "number" as expected within 1 ms/)
})
