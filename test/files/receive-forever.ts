/** Run as a process of its own by crash.test.ts: keeps one file unfinished and finishes others, until it is killed. */
import { FileStore } from '../../src/files/file-store.js'
import { facts, pieces } from './store-rig.js'

const log = { warn: () => {}, error: () => {} } as unknown as Parameters<typeof FileStore.open>[0]['log']
const store = await FileStore.open({ dir: process.argv[2] ?? '', ttlMs: 3_600_000, maxFileBytes: 2 ** 30, maxTotalBytes: 2 ** 31, now: () => Date.now(), log })

async function* endless(): AsyncGenerator<Uint8Array> {
  for (;;) {
    yield Buffer.alloc(1_000, 1)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

async function others(): Promise<void> {
  for (;;) {
    const result = await store.receive(pieces(Buffer.alloc(5_000, 2), Buffer.alloc(5_000, 3)), facts())
    if (result.ok) process.stdout.write(`${result.value.ref}\n`)
  }
}

void store.receive(endless(), facts())
await Promise.all(Array.from({ length: 4 }, others))
