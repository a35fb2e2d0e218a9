/** Who owns a route, and what becomes of it when that ends (DESIGN §7). */
import t from 'tap'
import { StoreError } from '../../src/protocol/errors.js'
import type { RouteName } from '../../src/protocol/ids.js'
import { OwnedRoute } from '../../src/route/owned-route.js'
import type { Route } from '../../src/route/route.js'
import type { Fence, Store } from '../../src/store/port.js'
import { ManualClock } from '../helper/manual-clock.js'

const NAME = 'r' as RouteName
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A route whose loading ends when the test says so, and a store that gives what it is told. */
function rig() {
  const clock = new ManualClock()
  const said: string[] = []
  const made: { start: (error?: Error) => void; lose: () => void; started: number; stopped: number }[] = []
  const store = { held: null as string | null, fences: 0, renewals: 0, released: [] as number[], renewError: null as Error | null }
  const owned = new OwnedRoute({
    name: NAME, clock, leaseMs: 3_000, log: { warn: (_: unknown, text: string) => said.push(text), error: (_: unknown, text: string) => said.push(text) } as never,
    store: {
      acquire: async (): Promise<Fence> => {
        if (store.held !== null) throw new StoreError('lease_held', store.held)
        return { route: NAME, number: (store.fences += 1) }
      },
      renew: async () => {
        store.renewals += 1
        if (store.renewError !== null) throw store.renewError
      },
      release: async ({ number }: Fence) => void store.released.push(number),
    } as unknown as Store,
    make: (onFenceLost) => {
      const one = { start: (_error?: Error): void => {}, lose: onFenceLost, started: 0, stopped: 0 }
      made.push(one)
      return {
        name: NAME, notReady: () => [], fenceLost: onFenceLost,
        start: () => new Promise<void>((resolve, reject) => { one.started += 1; one.start = (error) => (error === undefined ? resolve() : reject(error)) }),
        stop: async () => { one.stopped += 1 },
      } as unknown as Route
    },
  })
  const pass = async (ms: number): Promise<void> => { clock.advance(ms); for (let i = 0; i < 5; i += 1) await turn() }
  return { clock, said, made, store, owned, pass }
}

t.test('a lease that another process holds is asked for again, and then kept', async (t) => {
  const { made, store, owned, pass } = rig()
  store.held = 'another process holds the lease for 900 ms more'
  await owned.start()
  t.strictSame(owned.notReady(), ['r: another process holds the lease for 900 ms more'])
  store.held = null
  await pass(500)
  made[0]?.start()
  await pass(0)
  t.strictSame(owned.notReady(), [])
  await pass(1_000)
  await pass(1_000)
  t.equal(store.renewals, 2)
  await owned.stop()
  t.strictSame(store.released, [1])
})

t.test('lost to another process: it is stopped, made anew, and owned again when the lease is free', async (t) => {
  const { made, store, owned, pass } = rig()
  void owned.start()
  await pass(0)
  made[0]?.start()
  await pass(0)
  store.renewError = new StoreError('fence_lost', 'gone')
  store.held = 'another one has it'
  await pass(1_000)
  t.equal(made[0]?.stopped, 1)
  t.equal(made.length, 2)
  t.match(owned.notReady(), [/another/])
  store.renewError = store.held = null
  await pass(500)
  made[1]?.start()
  await pass(0)
  t.strictSame(owned.notReady(), [])
  t.strictSame(store.released, [], 'what was lost is not released')
})

t.test('lost while it loads: it is not shown as ready, and its lease is not renewed', async (t) => {
  const { made, store, owned, pass } = rig()
  void owned.start()
  await pass(0)
  store.held = 'another one has it'
  made[0]?.lose()
  await pass(0)
  made[0]?.start()
  await pass(0)
  t.match(owned.notReady(), [/another process owns this route/])
  await pass(3_000)
  t.equal(store.renewals, 0)
})

t.test('what cannot be loaded is let go, and tried again', async (t) => {
  const { made, said, store, owned, pass } = rig()
  void owned.start()
  await pass(0)
  made[0]?.start(new StoreError('record_newer', 'a record of version 9'))
  await pass(0)
  t.strictSame(owned.notReady(), ['r: a record of version 9'])
  t.strictSame([made[0]?.stopped, store.released], [1, [1]])
  await pass(5_000)
  made[1]?.start(new StoreError('record_newer', 'a record of version 9'))
  await pass(0)
  t.equal(said.length, 1, 'said once')
  await pass(5_000)
  made[2]?.start()
  await pass(0)
  t.strictSame(owned.notReady(), [])
})
