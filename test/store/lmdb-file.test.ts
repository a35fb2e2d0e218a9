import t, { type Test } from 'tap'
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { LmdbFile } from '../../src/store/lmdb-file.js'

const key = (name: string): Buffer => Buffer.from(name)

async function folder(t: Test): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'xig-lmdb-'))
  t.teardown(() => rm(made, { recursive: true, force: true }))
  return made
}

t.test('a write that throws in the middle leaves nothing of itself, and its neighbours in the batch stay', async (t) => {
  const file = new LmdbFile(await folder(t), false)
  t.teardown(() => file.close())
  const [before, failed, behind] = await Promise.allSettled([
    file.write(() => file.records.putSync(key('before'), '1')),
    file.write(() => {
      file.records.putSync(key('half'), '1')
      throw new Error('says the test')
    }),
    file.write(() => file.records.putSync(key('behind'), '1')),
  ])
  t.match([before.status, failed.status, behind.status], ['fulfilled', 'rejected', 'fulfilled'])
  t.match(failed, { reason: { code: 'store_unavailable', cause: { message: 'says the test' } } })
  t.strictSame(['before', 'half', 'behind'].map((name) => file.records.get(key(name))), ['1', undefined, '1'])
})

t.test('close waits for what is being written; nothing is taken after it', async (t) => {
  const path = await folder(t)
  const file = new LmdbFile(path, false)
  const written = file.write(() => file.records.putSync(key('k'), '1'))
  await file.close()
  await written
  await t.rejects(file.write(() => true), { code: 'store_unavailable' })
  t.throws(() => file.read(() => true), { code: 'store_unavailable' })
  const again = new LmdbFile(path, false)
  t.teardown(() => again.close())
  t.equal(again.read(() => again.records.get(key('k'))), '1')
})

for (const sync of [false, true]) {
  t.test(`store_sync ${sync}: a full disk fails commits with its reason; the process lives, serves what it has, and closes`, { timeout: 60_000 }, async (t) => {
    const script = fileURLToPath(new URL('./full-disk.ts', import.meta.url))
    // A limit on the size of files, for this process alone, is met like a full disk. lmdb writes to standard error by itself.
    const limited = ['-c', 'ulimit -f 2000 && exec "$@"', 'sh', process.execPath, '--import=tsx', script, await folder(t), String(sync)]
    const child = spawn('sh', limited, { stdio: ['ignore', 'pipe', 'ignore'] })
    t.teardown(() => child.kill('SIGKILL'))
    const exit = new Promise((resolve) => child.on('exit', resolve))
    const said = JSON.parse((await text(child.stdout)) || '{}') as Record<string, unknown>
    // The system's own reason: the write began behind the limit, or was cut short by it.
    t.match(said, { codes: ['store_unavailable', 'store_unavailable', 'store_unavailable'], cause: /file too large|input\/output error/i })
    t.match(said, { failedAreVisible: false, lastGoodIsVisible: true, counted: said.committed, closed: true })
    t.equal(await exit, 0)
  })
}
