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
const MAX_GROWTH_BYTES = 32 * MIB

/** The most memory that the process held since this was asked before. */
async function peakOf(child: ChildProcess): Promise<number> {
  const answer = once(child, 'message') as Promise<[{ peak: number }]>
  child.send('peak')
  return (await answer)[0].peak
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

t.test('100 MiB up and down take no more memory than 10 MiB do', { timeout: 90_000 }, async (t) => {
  const child = fork(SCRIPT, [join(await temporaryFolder(t), 'files')], { execArgv: ['--import=tsx'] })
  t.teardown(() => child.kill('SIGKILL'))
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  // As many bytes, so that garbage is collected as often; what would be held of one file is a tenth.
  for (let i = 0; i < 10; i += 1) await download(port, (await upload(port, 10)).ref)
  const small = await peakOf(child)
  const { ref, sha256 } = await upload(port, 100)
  const up = await peakOf(child)
  t.strictSame(await download(port, ref), { bytes: 100 * MIB, sha256 })
  const down = await peakOf(child)
  t.ok(up - small < MAX_GROWTH_BYTES, `${Math.round((up - small) / MIB)} MiB more while it went up`)
  t.ok(down - small < MAX_GROWTH_BYTES, `${Math.round((down - small) / MIB)} MiB more while it went down`)
})
