/** Run as a process of its own by store.test.ts: several commits at once, until it is killed or has lost its fence. */
import { openStore } from '../../src/store/open.js'
import { StoreError } from '../../src/protocol/errors.js'
import type { RouteName } from '../../src/protocol/ids.js'

const store = openStore(`lmdb:${process.argv[2]}`, { sync: false, now: () => Date.now() })
const fence = await store.acquire('a' as RouteName, 60_000)
let next = 0

async function write(): Promise<void> {
  for (;;) {
    const key = String((next += 1))
    await store.commit([{ op: 'put', kind: 'inbound', key, value: key }, { op: 'put', kind: 'body', key, value: 'x'.repeat(300) }], fence)
    process.stdout.write(`${key}\n`)
  }
}

try {
  await Promise.all(Array.from({ length: 8 }, write))
} catch (error) {
  process.stdout.write(`${error instanceof StoreError ? error.code : String(error)}\n`)
}
