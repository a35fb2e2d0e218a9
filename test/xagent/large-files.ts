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
// Asked for: the most that was held since the last question. What is held at one moment is up to the allocator.
let peak = 0
const look = (): void => void (peak = Math.max(peak, process.memoryUsage.rss()))
setInterval(look, 5)
process.on('message', () => {
  look()
  process.send?.({ peak })
  peak = 0
})
process.send?.({ port })
