import t, { type Test } from 'tap'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { openStore } from '../../src/store/open.js'
import { LmdbStore } from '../../src/store/lmdb.js'
import type { RouteName } from '../../src/protocol/ids.js'
import { NO_REDIS, redisServer } from '../helper/redis-server.js'
import { storeSuite } from './store-suite.js'

const A = 'a' as RouteName
const now = () => Date.now()

async function folder(t: Test): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'xig-store-'))
  t.teardown(() => rm(made, { recursive: true, force: true }))
  return made
}

t.test('memory:', async (t) => {
  storeSuite(t, async (t) => {
    const store = openStore('memory:', { sync: false, now })
    t.teardown(() => store.close())
    return { store, reopen: null }
  })
})

for (const sync of [false, true]) {
  t.test(`lmdb:, store_sync ${sync}`, async (t) => {
    storeSuite(t, async (t) => {
      const path = await folder(t)
      let store = openStore(`lmdb:${path}`, { sync, now })
      t.teardown(() => store.close())
      return {
        store,
        reopen: async () => {
          await store.close()
          store = openStore(`lmdb:${path}`, { sync, now })
          return store
        },
      }
    })
  })
}

t.test('redis:', { skip: NO_REDIS }, async (t) => {
  const server = await redisServer(t, ['--appendonly', 'no'])
  let databases = 0
  storeSuite(t, async (t) => {
    // Each test has a prefix of its own; one of them is a pattern to whoever would scan for it.
    const redis = { prefix: `xig*${(databases += 1)}:`, waitReplicas: 0 }
    let store = openStore(server.url, { sync: false, now, redis })
    t.teardown(() => store.close())
    return {
      store,
      reopen: async () => {
        await store.close()
        store = openStore(server.url, { sync: false, now, redis })
        return store
      },
    }
  })
})

t.test('the data folder is private to its owner', async (t) => {
  const path = join(await folder(t), 'data')
  const store = openStore(`lmdb:${path}`, { sync: false, now })
  t.teardown(() => store.close())
  t.equal((await stat(path)).mode & 0o777, 0o700)
  for (const name of await readdir(path)) t.equal((await stat(join(path, name))).mode & 0o077, 0, name)
})

t.test('a folder that serves others too is not closed to them; an empty one is', async (t) => {
  const path = await folder(t)
  const shared = join(path, 'shared')
  const empty = join(path, 'empty')
  for (const each of [shared, empty]) await mkdir(each)
  for (const each of [shared, empty]) await chmod(each, 0o755)
  await writeFile(join(shared, 'of-somebody-else'), 'x')
  for (const each of [shared, empty]) await openStore(`lmdb:${each}`, { sync: false, now }).close()
  t.equal((await stat(shared)).mode & 0o777, 0o755)
  t.equal((await stat(join(shared, 'gateway.mdb'))).mode & 0o077, 0, 'its own files are private all the same')
  t.equal((await stat(empty)).mode & 0o777, 0o700)
})

t.test('a store that cannot be opened says so; one that does not exist names those that do', async (t) => {
  const file = join(await folder(t), 'file')
  await writeFile(file, 'x')
  t.throws(() => openStore(`lmdb:${file}/below`, { sync: false, now }), { code: 'store_unavailable' })
  t.throws(() => openStore('mysql://x', { sync: false, now }), { code: 'config_invalid', message: /use memory:, lmdb:<folder> or redis:/ })
  t.throws(() => openStore('redis://host:port', { sync: false, now }), { code: 'config_invalid', message: /no URL of Redis; must be redis:/ })
})

t.test('a record that cannot be read is named, and the rest of the list goes on', async (t) => {
  const path = await folder(t)
  const { open } = await import('lmdb')
  const store = openStore(`lmdb:${path}`, { sync: true, now })
  const fence = await store.acquire(A, 5_000)
  await store.commit([{ op: 'put', kind: 'inbound', key: '1', value: 1 }, { op: 'put', kind: 'inbound', key: '2', value: 2 }], fence)
  await store.close()
  const raw = open({ path: join(path, 'gateway.mdb'), encoding: 'string', maxDbs: 4, noSubdir: true })
  await raw.openDB({ name: 'records', encoding: 'string' }).put('a/inbound/1', '{broken')
  await raw.close()
  const unreadable: string[] = []
  const again = new LmdbStore(path, { sync: false, now, onUnreadable: (kind, key) => unreadable.push(`${kind} ${key}`) })
  t.teardown(() => again.close())
  t.throws(() => again.get(A, 'inbound', '1'), { code: 'record_unreadable', message: /inbound "1"/ })
  t.strictSame((await again.list(A, 'inbound')).records, [{ key: '2', value: 2 }])
  t.strictSame(unreadable, ['inbound 1'])
  await again.close()
  const strict = new LmdbStore(path, { sync: false, now })
  t.teardown(() => strict.close())
  await t.rejects(strict.list(A, 'inbound'), { code: 'record_unreadable', message: /inbound "1"/ }, 'never left out in silence')
})

/** A process that commits batches of two records; it prints the number of each batch that was resolved, until it is killed. */
function writer(t: Test, path: string) {
  const child = spawn(process.execPath, ['--import=tsx', fileURLToPath(new URL('./store-writer.ts', import.meta.url)), path], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  return { child, lines: createInterface({ input: child.stdout }), exited }
}

async function lastLine(lines: Interface): Promise<string> {
  let last = ''
  lines.on('line', (line) => (last = line))
  await once(lines, 'close')
  return last
}

t.test('kill -9: what was committed is there, no batch is there by half, and the lease is free at once', { timeout: 60_000 }, async (t) => {
  const path = await folder(t)
  const { child, lines, exited } = writer(t, path)
  const resolved: string[] = []
  for await (const line of lines) {
    resolved.push(line)
    if (resolved.length === 500) child.kill('SIGKILL')
  }
  await exited
  t.ok(resolved.length >= 500)
  // Opened with the other kind of durability on purpose: it may be changed between two runs.
  const store = openStore(`lmdb:${path}`, { sync: true, now })
  t.teardown(() => store.close())
  t.strictSame(resolved.filter((key) => store.get(A, 'inbound', key) !== key), [], 'every batch that was resolved')
  const keysOf = async (kind: 'inbound' | 'body') => (await store.list(A, kind, { limit: 1_000_000 })).records.map(({ key }) => key)
  t.strictSame(await keysOf('inbound'), await keysOf('body'), 'both halves of each batch, or none')
  await store.acquire(A, 5_000)
  t.pass('the holder is provably gone: nobody waits for its lease')
})

t.test('the lease of a live process is respected, and its fence is checked between processes once it has run out', { timeout: 60_000 }, async (t) => {
  const path = await folder(t)
  const { lines, exited } = writer(t, path)
  await once(lines, 'line')
  const said = lastLine(lines)
  let ahead = 0
  const store = openStore(`lmdb:${path}`, { sync: false, now: () => Date.now() + ahead })
  t.teardown(() => store.close())
  await t.rejects(store.acquire(A, 5_000), { code: 'lease_held' })
  ahead = 3_600_000
  const fence = await store.acquire(A, 5_000)
  t.equal(await said, 'fence_lost', 'the process that still writes is told')
  await store.commit([{ op: 'put', kind: 'route', key: 'k', value: 1 }], fence)
  await exited
})
