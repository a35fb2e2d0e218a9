import t from 'tap'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { RouteName } from '../../src/protocol/ids.js'
import { acquired, held, renewed, type LeaseRecord } from '../../src/store/lease.js'
import { isProvablyGone, ownIdentity, type ProcessIdentity } from '../../src/store/process-identity.js'

const elsewhere: ProcessIdentity = { pid: 1, boot: 'another boot', namespace: 'pid:[1]', startedAt: '1' }
const lease = (more: Partial<LeaseRecord> = {}): LeaseRecord => ({ number: 7, owner: 'them', expiresAt: 2_000, process: elsewhere, ...more })
const us = { owner: 'us', expiresAt: 6_000, process: ownIdentity() }
const fence = (number: number) => ({ route: 'a' as RouteName, number })

t.test('a lease that runs elsewhere is held until it has run out', async (t) => {
  t.throws(() => acquired(lease(), us, 1_999), { code: 'lease_held' })
  t.equal(acquired(lease(), us, 2_000).number, 8)
})

t.test('a released lease and one\'s own are taken at once, the fence number only grows', async (t) => {
  t.equal(acquired(undefined, us, 0).number, 1)
  t.equal(acquired(lease({ expiresAt: 0 }), us, 0).number, 8)
  t.equal(acquired(lease({ owner: 'us' }), us, 0).number, 8)
})

t.test('a lease is renewed by the latest fence only', async (t) => {
  t.equal(renewed(lease(), fence(7), 9_000).expiresAt, 9_000)
  t.throws(() => renewed(lease(), fence(6), 9_000), { code: 'fence_lost' })
  t.throws(() => held(lease(), fence(8)), { code: 'fence_lost' })
  t.throws(() => held(undefined, fence(1)), { code: 'fence_lost' })
})

const canTell = ownIdentity().boot !== null && ownIdentity().namespace !== null
const skip = canTell ? false : 'this system has no /proc to tell who runs'

t.test('a process is provably gone once it was killed, and not before', { skip }, async (t) => {
  const script = fileURLToPath(new URL('./print-identity.ts', import.meta.url))
  const child = spawn(process.execPath, ['--import=tsx', script], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const identity = JSON.parse(line) as ProcessIdentity
  t.equal(identity.pid, child.pid)
  t.notOk(isProvablyGone(identity))
  t.throws(() => acquired(lease({ process: identity }), us, 0), { code: 'lease_held' })
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
  t.ok(isProvablyGone(identity))
  t.equal(acquired(lease({ process: identity }), us, 0).number, 8, 'a restart after kill -9 does not wait')
})

t.test('a pid that another process uses now does not keep the lease', { skip }, async (t) => {
  t.notOk(isProvablyGone(ownIdentity()))
  t.ok(isProvablyGone({ ...ownIdentity(), startedAt: '1' }))
})

t.test('nobody is gone for sure in another machine, another container, or where the system does not tell', async (t) => {
  const gone = { ...ownIdentity(), startedAt: '1' }
  t.notOk(isProvablyGone({ ...gone, boot: 'another boot' }))
  t.notOk(isProvablyGone({ ...gone, namespace: 'pid:[1]' }))
  t.notOk(isProvablyGone({ ...gone, boot: null }))
  t.notOk(isProvablyGone({ ...gone, namespace: null }))
  t.notOk(isProvablyGone({ ...gone, startedAt: null }))
})
