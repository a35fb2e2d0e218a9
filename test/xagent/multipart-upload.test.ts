import t from 'tap'
import fc from 'fast-check'
import type { StoredFile } from '../../src/files/file-store.js'
import type { Result } from '../../src/protocol/errors.js'
import { MultipartUpload } from '../../src/xagent/multipart-upload.js'
import { facts, rig, type Rig } from '../files/store-rig.js'
import { FORM, TAIL, head } from './file-listening.js'

interface Fed {
  readonly upload: MultipartUpload
  feed(pieces: readonly Buffer[]): Promise<Result<StoredFile>>
}

/** A form that is written as fast as it is taken. */
function newUpload({ store }: Rig, contentType = FORM['content-type']): Fed {
  let drained = (): void => {}
  const upload = new MultipartUpload({
    contentType, maxBytes: 1_000_000,
    receive: (bytes, { filename, mimeType }, signal) => store.receive(bytes, facts({ filename, claimedMime: mimeType }), { signal }),
    remove: (file) => store.remove(file.ref),
    onDrain: () => drained(),
  })
  return {
    upload,
    async feed(pieces) {
      let over = false
      upload.done.finally(() => {
        over = true
        drained()
      })
      for (const piece of pieces) {
        if (over || upload.write(piece)) continue
        await new Promise<void>((resolve) => (drained = resolve))
      }
      upload.end()
      return upload.done
    },
  }
}

/** Cut at these places. */
function cut(body: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map((place) => place % (body.length + 1)))].sort((a, b) => a - b)
  return [0, ...at].map((from, index) => body.subarray(from, at[index] ?? body.length)).filter(({ length }) => length > 0)
}

const places = fc.array(fc.nat(500_000), { maxLength: 12 })

t.test('whatever the pieces: the same file', { timeout: 60_000 }, async (t) => {
  const made = await rig(t)
  await fc.assert(fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 100_000 }), places, async (content, at) => {
    const body = Buffer.concat([Buffer.from(`${head('form-data; name="reply_token"')}x\r\n${head('form-data; name="file"; filename="a.bin"')}`), content, Buffer.from(TAIL)])
    const result = await newUpload(made).feed(cut(body, at))
    if (!result.ok || result.value.byteSize !== content.length) return false
    await made.store.remove(result.value.ref)
    return made.names().length === 0
  }), { numRuns: 60 })
})

const line = fc.constantFrom(
  '--xx', '--xx--', '--', '\r\n', '\r\n\r\n', '\n', '\r', 'Content-Disposition: form-data; name="file"; filename="a"', 'Content-Disposition: form-data; name="file"',
  'Content-Disposition: attachment', 'Content-Disposition: form-data; name="x"', 'content-type: text/plain', 'content-type: application/octet-stream', ': ', 'x', '\u0000', '"', ';', 'filename*=UTF-8\'\'%zz',
)
const malformed = fc.oneof(
  fc.array(fc.oneof({ weight: 4, arbitrary: line }, fc.string({ maxLength: 8 })), { maxLength: 40 }).map((parts) => parts.join('')),
  fc.array(fc.oneof({ weight: 4, arbitrary: line }, fc.string({ maxLength: 8 })), { maxLength: 40 }).map((parts) => parts.join('\r\n')),
  // A right one with a piece cut out of it and another put in.
  fc.tuple(fc.nat(200), fc.nat(200), fc.string({ maxLength: 20 })).map(([from, length, put]) => {
    const right = `${head('form-data; name="file"; filename="a"', 'Content-Type: text/plain\r\n')}hello${TAIL}`
    return right.slice(0, from) + put + right.slice(from + length)
  }),
)

t.test('whatever the form: it ends, with a file or with a code, and what is no file leaves nothing', { timeout: 90_000 }, async (t) => {
  const made = await rig(t)
  const codes = new Set<string>()
  let taken = 0
  await fc.assert(fc.asyncProperty(malformed, places, async (body, at) => {
    const result = await newUpload(made).feed(cut(Buffer.from(body), at))
    if (!result.ok) codes.add(result.error.code)
    else {
      taken += 1
      await made.store.remove(result.value.ref)
    }
    return made.names().length === 0
  }), { numRuns: 2_000, timeout: 5_000 })
  t.ok([...codes].every((code) => ['multipart_invalid', 'file_missing', 'filename_missing', 'file_empty', 'file_unreadable'].includes(code)), [...codes].join())
  t.ok(taken > 0 && codes.size >= 3, 'forms of every sort were tried')
  t.equal(made.store.freeBytes, 10_000_000)
})

t.test('whatever the content type: an answer', async (t) => {
  const made = await rig(t)
  await fc.assert(fc.asyncProperty(fc.oneof(fc.string(), fc.string().map((text) => `multipart/form-data;${text}`), fc.string().map((text) => `multipart/form-data; boundary=${text}`)), async (type) => {
    const result = await newUpload(made, type).feed([Buffer.from(`${head('form-data; name="file"; filename="a"')}x${TAIL}`)])
    return !result.ok
  }), { numRuns: 300, timeout: 5_000 })
})

t.test('a file that nobody takes holds its writer back', async (t) => {
  const upload = new MultipartUpload({
    contentType: FORM['content-type'], maxBytes: 100_000_000,
    receive: (_bytes, _part, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve({ ok: false, error: { code: 'upload_aborted' } }))),
    remove: async () => {},
    onDrain: () => {},
  })
  upload.write(Buffer.from(head('form-data; name="file"; filename="a"')))
  let written = 0
  while (upload.write(Buffer.alloc(10_000)) && written < 10_000_000) {
    written += 10_000
    await new Promise(setImmediate)
  }
  t.ok(written < 1_000_000, `${written} bytes were taken without anybody reading`)
  upload.abort()
  t.match(await upload.done, { ok: false, error: { code: 'upload_aborted' } })
})
