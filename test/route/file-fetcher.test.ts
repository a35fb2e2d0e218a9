/** Files that were only remembered, and are copied when xAgent asks (`files.inbound: lazy`). */
import t from 'tap'
import { err, ok } from '../../src/protocol/errors.js'
import type { RemoteFile, StoredFile } from '../../src/files/stored-file.js'
import type { RouteContext, RouteFiles } from '../../src/route/context.js'
import { FileFetcher } from '../../src/route/file-fetcher.js'
import { ManualClock } from '../helper/manual-clock.js'

t.test('whoever asks while it is copied waits for the same copy; afterwards it is copied anew', async (t) => {
  const answers: ((found: boolean) => void)[] = []
  const stored = { ref: 'file_1', byteSize: 3 } as StoredFile
  const files = {
    inbound: 'lazy', fetchTimeoutMs: 30_000,
    transfers: { download: () => new Promise((resolve) => answers.push((found) => resolve(found ? ok({ body: [] }) : err({ code: 'http_404', retry: false })))) },
    store: { receive: async () => ok(stored) },
  } as unknown as RouteFiles
  const context = { clock: new ManualClock(), metrics: { deviations: () => {} }, log: { warn: () => {} } } as unknown as RouteContext
  const fetcher = new FileFetcher(context, files, () => {})
  const file = { ref: 'file_1', channelId: 'c', remote: '/media/refs/1' } as RemoteFile
  const asked = [fetcher.remote(file), fetcher.remote(file)]
  await new Promise(setImmediate)
  t.equal(answers.length, 1)
  answers[0]?.(false)
  t.match(await Promise.all(asked), [{ ok: false, error: { code: 'file_not_available' } }, { ok: false }])
  const again = fetcher.remote(file)
  await new Promise(setImmediate)
  answers[1]?.(true)
  t.strictSame(await again, ok(stored))
})
