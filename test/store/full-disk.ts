/** Run as a process of its own by lmdb-file.test.ts, with a limit on the size of files: commits until three have failed. */
import type { RouteName } from '../../src/protocol/ids.js'
import { StoreError } from '../../src/protocol/errors.js'
import { openStore } from '../../src/store/open.js'

const [, , folder, sync] = process.argv
const route = 'a' as RouteName
const store = openStore(`lmdb:${folder}`, { sync: sync === 'true', now: () => Date.now() })
const fence = await store.acquire(route, 60_000)
const failures: { key: string; error: unknown }[] = []
let committed = 0

for (let i = 0; failures.length < 3 && i < 10_000; i += 1) {
  try {
    await store.commit([{ op: 'put', kind: 'body', key: String(i), value: 'x'.repeat(9_000) }], fence)
    committed += 1
  } catch (error) {
    failures.push({ key: String(i), error })
  }
}

const cause = failures[0]?.error instanceof Error ? failures[0].error.cause : null
const said = {
  committed,
  codes: failures.map(({ error }) => (error instanceof StoreError ? error.code : 'another error')),
  cause: cause instanceof Error ? cause.message : String(cause),
  failedAreVisible: failures.some(({ key }) => store.get(route, 'body', key) !== undefined),
  lastGoodIsVisible: store.get(route, 'body', String(committed - 1)) !== undefined,
  counted: await store.count(route, 'body'),
}
await store.close()
process.stdout.write(JSON.stringify({ ...said, closed: true }))
