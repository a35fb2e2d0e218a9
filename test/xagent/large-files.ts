/** Run as a process of its own by large-files.test.ts: a listener with a file store that says how much memory it holds. */
import { FileStore } from '../../src/files/file-store.js'
import { systemClock } from '../../src/ops/clock.js'
import type { ChannelId, RouteName } from '../../src/protocol/ids.js'
import type { NorthRoute } from '../../src/xagent/port.js'
import { startXagentServer } from '../../src/xagent/server.js'

const MIB = 1024 * 1024
const log = { warn: () => {}, error: () => {} } as unknown as Parameters<typeof FileStore.open>[0]['log']
const store = await FileStore.open({ dir: process.argv[2] ?? '', ttlMs: 3_600_000, maxFileBytes: 200 * MIB, maxTotalBytes: 1_000 * MIB, now: () => Date.now(), log })
const nothing = { status: 404, reason: 'none' } as const
const route: NorthRoute = {
  name: 'telegram' as RouteName, card: () => nothing, skill: () => nothing, health: () => nothing, ownsChannel: (id) => id as ChannelId,
  onLinkOpened: () => {}, onPacket: () => ({ countsAgainstLimit: true }), onDrain: () => {}, onLinkClosed: () => {},
}
const { port } = await startXagentServer({
  host: '127.0.0.1', port: 0, tls: null, apiKeys: [], limits: { maxFrameBytes: 65_536, maxLinks: 10, linksPerIp: 10, helloTimeoutMs: 10_000, packetsPerSecond: 100 },
  clock: systemClock(), newId: () => 'id', route: () => route, files: { store, fetchRemote: async () => ({ ok: false, error: { code: 'none' } }) },
  observe: (event) => process.send?.({ event }),
})
// Asked for: what is held now, when everything that can be freed was, and the most that was held since the last question.
let peak = 0
setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 5)
process.on('message', () => void answer())

/** What was freed is given back by another thread, some time later: the answer is what is held when that makes no difference any more. */
async function answer(): Promise<void> {
  let now = Infinity
  for (let unchanged = 0; unchanged < 20; unchanged += 1) {
    globalThis.gc?.()
    await new Promise((resolve) => setTimeout(resolve, 10))
    const rss = process.memoryUsage.rss()
    if (rss < now) unchanged = 0
    now = Math.min(now, rss)
  }
  process.send?.({ now, peak: Math.max(peak, now) })
  peak = now
}

process.send?.({ port })
