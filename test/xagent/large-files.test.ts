import t from 'tap'
import { fork, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { buffer } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../files/store-rig.js'
import { FORM, TAIL, head } from './file-listening.js'

const SCRIPT = fileURLToPath(new URL('./large-files.ts', import.meta.url))
const MIB = 1024 * 1024
const SIZE_MIB = 100
const MAX_GROWTH_BYTES = 32 * MIB

async function memoryOf(child: ChildProcess): Promise<{ readonly now: number; readonly peak: number }> {
  const answer = once(child, 'message') as Promise<[{ now: number; peak: number }]>
  child.send('memory')
  return (await answer)[0]
}

/** The same bytes every time, none of them like the ones before. */
function* content(mib: number, onPiece: (piece: Buffer) => void): Generator<Buffer> {
  const piece = Buffer.alloc(MIB)
  for (let i = 0; i < mib; i += 1) {
    piece.fill(createHash('sha256').update(String(i)).digest())
    onPiece(piece)
    yield Buffer.from(piece)
  }
}

async function upload(port: number, mib: number): Promise<{ readonly ref: string; readonly sha256: string }> {
  const hash = createHash('sha256')
  const begun = request({ port, method: 'POST', path: '/telegram/files/uploads', headers: { ...FORM, 'x-xagent-connector-channel-id': 'cch_1', 'transfer-encoding': 'chunked' } })
  const answer = once(begun, 'response') as Promise<[IncomingMessage]>
  await pipeline(async function* () {
    yield head('form-data; name="file"; filename="large.bin"')
    yield* content(mib, (piece) => hash.update(piece))
    yield TAIL
  }, begun)
  const json = JSON.parse((await buffer((await answer)[0])).toString()) as { file_ref: string }
  return { ref: json.file_ref, sha256: hash.digest('hex') }
}

async function download(port: number, ref: string): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const begun = request({ port, path: `/files/refs/${ref}` }).end()
  const [response] = (await once(begun, 'response')) as [IncomingMessage]
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    hash.update(chunk)
    bytes += chunk.length
  }
  return { bytes, sha256: hash.digest('hex') }
}

t.test('100 MiB up and down pass through without being held in memory', { timeout: 90_000 }, async (t) => {
  const child = fork(SCRIPT, [join(await temporaryFolder(t), 'files')], { execArgv: ['--import=tsx', '--expose-gc'] })
  t.teardown(() => child.kill('SIGKILL'))
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  // The first ones load code and fill the pools that every later one uses.
  for (let i = 0; i < 3; i += 1) await download(port, (await upload(port, 20)).ref)
  const before = await memoryOf(child)
  const { ref, sha256 } = await upload(port, SIZE_MIB)
  const up = await memoryOf(child)
  t.strictSame(await download(port, ref), { bytes: SIZE_MIB * MIB, sha256 })
  const down = await memoryOf(child)
  const grown = (bytes: number): string => `${Math.round((bytes - before.now) / MIB)} MiB`
  t.ok(up.now - before.now < MAX_GROWTH_BYTES, `after the upload ${grown(up.now)} more, at most ${grown(up.peak)}`)
  t.ok(down.now - before.now < MAX_GROWTH_BYTES, `after the download ${grown(down.now)} more, at most ${grown(down.peak)}`)
  t.ok(Math.max(up.peak, down.peak) - before.now < 2 * MAX_GROWTH_BYTES, 'nor is there a peak')
})
