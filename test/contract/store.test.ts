import t, { type Test } from 'tap'
import { spawn } from 'node:child_process'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openStore } from '../../src/store/open.js'
import { LmdbStore } from '../../src/store/lmdb.js'
import type { RouteName } from '../../src/protocol/ids.js'
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

t.test('the data folder is private to its owner', async (t) => {
  const path = join(await folder(t), 'data')
  const store = openStore(`lmdb:${path}`, { sync: false, now })
  t.teardown(() => store.close())
  t.equal((await stat(path)).mode & 0o777, 0o700)
  t.equal((await stat(join(path, 'gateway.mdb'))).mode & 0o077, 0)
})

t.test('a store that cannot be opened says so; one that does not exist names those that do', async (t) => {
  const file = join(await folder(t), 'file')
  await writeFile(file, 'x')
  t.throws(() => openStore(`lmdb:${file}/below`, { sync: false, now }), { code: 'store_unavailable' })
  t.throws(() => openStore('mysql://x', { sync: false, now }), { code: 'config_invalid', message: /use memory: or lmdb:/ })
  t.throws(() => openStore('redis://x', { sync: false, now }), { message: /not yet in this version/ })
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
})

/** A process that commits batches of two records and prints the number of each batch that was resolved, until it is killed. */
function writer(path: string) {
  return spawn(process.execPath, ['--import=tsx', fileURLToPath(new URL('./store-writer.ts', import.meta.url)), path], { stdio: ['ignore', 'pipe', 'inherit'] })
}

t.test('kill -9: what was committed is there, no batch is there by half, and the lease is free at once', { timeout: 60_000 }, async (t) => {
  const path = await folder(t)
  const child = writer(path)
  let resolved = -1
  const exited = new Promise<void>((resolve) => child.on('exit', () => resolve()))
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    const lines = chunk.toString().trim().split('\n')
    resolved = Math.max(resolved, Number(lines.at(-1)))
    if (resolved > 500) child.kill('SIGKILL')
  }
  await exited
  t.ok(resolved > 500)
  const store = openStore(`lmdb:${path}`, { sync: false, now })
  t.teardown(() => store.close())
  for (let i = 0; i <= resolved; i += 1) if (store.get(A, 'inbound', String(i)) !== i) throw new Error(`batch ${i} was resolved and is not there`)
  t.equal(await store.count(A, 'inbound'), await store.count(A, 'body'))
  await store.acquire(A, 5_000)
  t.pass('the holder is provably gone: nobody waits for its lease')
})

t.test('a live holder\'s lease is respected by another process, and its fence is checked between processes', { timeout: 60_000 }, async (t) => {
  const path = await folder(t)
  const child = writer(path)
  t.teardown(() => child.kill('SIGKILL'))
  await new Promise((resolve) => child.stdout.once('data', resolve))
  const store = openStore(`lmdb:${path}`, { sync: false, now })
  t.teardown(() => store.close())
  await t.rejects(store.acquire(A, 5_000), { code: 'lease_held' })
})
