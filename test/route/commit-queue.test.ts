import t from 'tap'
import type { Change } from '../../src/core/record.js'
import { StoreError } from '../../src/protocol/errors.js'
import type { RouteName } from '../../src/protocol/ids.js'
import { CommitQueue } from '../../src/route/commit-queue.js'
import type { Fence, Store } from '../../src/store/port.js'
import { ManualClock } from '../helper/manual-clock.js'

const put = (key: string, value: unknown = key): Change => ({ op: 'put', kind: 'inbound', key, value })
const turns = async (n = 5): Promise<void> => { for (let i = 0; i < n; i += 1) await Promise.resolve() }

/** A queue before a store whose commits are ended by hand. */
function rig() {
  const clock = new ManualClock()
  const batches: { keys: string[]; end: (error?: StoreError) => void }[] = []
  const stored = new Map<string, unknown>([['old', 'stored']])
  const store = {
    get: (_route: string, _kind: string, key: string) => stored.get(key),
    commit: (changes: readonly Change[]) => new Promise<void>((resolve, reject) => {
      batches.push({
        keys: changes.map(({ key }) => key),
        end(error) {
          if (error !== undefined) return reject(error)
          for (const change of changes) if (change.op === 'put') stored.set(change.key, change.value); else stored.delete(change.key)
          resolve()
        },
      })
    }),
  } as unknown as Store
  const health: boolean[] = []
  let lost = 0
  const queue = new CommitQueue(store, { route: 'r' as RouteName, number: 1 } as Fence, clock, { onHealth: (healthy) => health.push(healthy), onFenceLost: () => { lost += 1 } })
  return { clock, batches, queue, health, stored, lost: () => lost }
}

t.test('what comes while a batch is written joins the next one, in order', async (t) => {
  const { queue, batches } = rig()
  const done: string[] = []
  queue.push([put('a')], () => done.push('a'))
  queue.push([put('b')], () => done.push('b'))
  await turns()
  queue.push([put('c')], () => done.push('c'))
  queue.push([put('d')], () => done.push('d'))
  t.strictSame(batches.map(({ keys }) => keys), [['a', 'b']], 'pushes of one turn are one batch; one batch at a time')
  batches[0]?.end()
  await turns()
  t.strictSame(done, ['a', 'b'])
  t.strictSame(batches[1]?.keys, ['c', 'd'])
  batches[1]?.end()
  await turns()
  t.strictSame(done, ['a', 'b', 'c', 'd'])
  t.ok(queue.idle)
})

t.test('readers see what is queued, and what is stored where nothing is', async (t) => {
  const { queue, batches, stored } = rig()
  queue.push([put('a', 1), { op: 'delete', kind: 'inbound', key: 'old' }], null)
  t.equal(queue.read('inbound', 'a'), 1)
  t.equal(queue.read('inbound', 'old'), undefined)
  await turns()
  queue.push([put('a', 2)], null)
  batches[0]?.end()
  await turns()
  t.equal(stored.get('a'), 1)
  t.equal(queue.read('inbound', 'a'), 2, 'an older batch does not drop a newer value')
})

t.test('a failed batch is tried again before anything else, and its continuation runs once', async (t) => {
  const { queue, batches, health, clock } = rig()
  let done = 0
  queue.push([put('a')], () => { done += 1 })
  await turns()
  queue.push([put('b')], null)
  batches[0]?.end(new StoreError('store_unavailable', 'x'))
  await turns()
  t.strictSame(health, [false])
  t.notOk(queue.healthy)
  t.equal(batches.length, 1)
  clock.advance(500)
  t.strictSame(batches[1]?.keys, ['a'])
  batches[1]?.end(new StoreError('store_unavailable', 'x'))
  await turns()
  clock.advance(500)
  batches[2]?.end()
  await turns()
  t.strictSame(health, [false, false, true])
  t.equal(done, 1)
  t.strictSame(batches[3]?.keys, ['b'])
})

t.test('a lost fence ends the queue: nothing is tried again, nothing more is taken', async (t) => {
  const { queue, batches, clock, lost } = rig()
  let done = 0
  queue.push([put('a')], () => { done += 1 })
  await turns()
  batches[0]?.end(new StoreError('fence_lost', 'x'))
  await turns()
  queue.push([put('b')], () => { done += 1 })
  clock.advance(10_000)
  await turns()
  t.equal(lost(), 1)
  t.equal(done, 0)
  t.equal(batches.length, 1)
  await queue.drained()
})

t.test('drained resolves when everything queued is durable', async (t) => {
  const { queue, batches } = rig()
  await queue.drained()
  let drained = false
  queue.push([put('a')], null)
  void queue.drained().then(() => { drained = true })
  await turns()
  queue.push([put('b')], null)
  batches[0]?.end()
  await turns()
  t.notOk(drained)
  batches[1]?.end()
  await turns()
  t.ok(drained)
})
