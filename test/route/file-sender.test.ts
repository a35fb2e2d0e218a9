/** Files on their way to a person, when something is wrong on the way (DESIGN §5). */
import { Readable } from 'node:stream'
import t from 'tap'
import type { ChannelId, LegacyChannelId, RouteName } from '../../src/protocol/ids.js'
import { ChannelTable } from '../../src/route/channel-table.js'
import type { RouteContext, RouteFiles } from '../../src/route/context.js'
import { FileSender } from '../../src/route/file-sender.js'
import { ManualClock } from '../helper/manual-clock.js'

const ROUTE = 'r' as RouteName

/** A sender whose file store gives these bytes, and whose connector reads them to their end. */
function sender(bytes: () => Readable): FileSender {
  const file = { ref: 'file_1', route: ROUTE, channelId: 'c', kind: 'staged', type: 'file', mimeType: 'text/plain', filename: 'a.txt', byteSize: 3, sha256: '', expiresAt: Infinity }
  const files = {
    store: { find: () => file, bytes },
    transfers: { upload: async (_path: string, _channel: string, { body }: { body: Readable }) => { await body.toArray(); return { ok: true, value: 'south' } } },
  } as unknown as RouteFiles
  const context = { settings: { name: ROUTE, toolTimeoutMs: 30_000 }, clock: new ManualClock(), facts: { legacyCard: null }, log: { warn: () => {} } } as unknown as RouteContext
  return new FileSender(context, files, () => Promise.reject(new Error('no remote files here')))
}

const entry = new ChannelTable().add('c' as ChannelId, 'l' as LegacyChannelId)

t.test('bytes that cannot be read to their end are tried again, and nothing is thrown', async (t) => {
  const broken = (): Readable => new Readable({ read() { this.destroy(new Error('EIO: i/o error, read')) } })
  t.strictSame(await sender(broken).step(entry, 'file_1', {}), { ok: false, temporary: true, code: 'file_unreadable' })
  t.strictSame(await sender(() => { throw new Error('EMFILE: too many open files') }).step(entry, 'file_1', {}), { ok: false, temporary: true, code: 'file_unreadable' })
  t.strictSame(await sender(() => Readable.from([Buffer.from('abc')])).step(entry, 'file_1', {}), { ok: true, ref: 'south' })
})
