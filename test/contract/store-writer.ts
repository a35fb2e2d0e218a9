/** Run as a process of its own by store.test.ts: commits until it is killed. */
import { openStore } from '../../src/store/open.js'
import type { RouteName } from '../../src/protocol/ids.js'

const store = openStore(`lmdb:${process.argv[2]}`, { sync: false, now: () => Date.now() })
const fence = await store.acquire('a' as RouteName, 60_000)
for (let i = 0; i < 1_000_000; i += 1) {
  await store.commit([{ op: 'put', kind: 'inbound', key: String(i), value: i }, { op: 'put', kind: 'body', key: String(i), value: 'x' }], fence)
  process.stdout.write(`${i}\n`)
}
