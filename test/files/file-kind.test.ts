import t from 'tap'
import { fileIs } from '../../src/files/file-kind.js'
import type { FileType } from '../../src/files/file-store.js'

const png = Buffer.from('89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000049444154', 'hex')
const ogg = Buffer.concat([Buffer.from('OggS'), Buffer.alloc(24), Buffer.from('OpusHead'), Buffer.alloc(20)])
const webm = Buffer.from('1a45dfa39f4286810142f7810142f2810442f381084282847765626d42878104428581021853', 'hex')
const mp4 = Buffer.from('00000018667479706d703432000000006d70343269736f6d', 'hex')
const zip = Buffer.concat([Buffer.from('504b0304140000000000', 'hex'), Buffer.alloc(20), Buffer.from('x')])
const silk = Buffer.from('\x02#!SILK_V3\x0c\x00\xb7\x01', 'latin1')
const text = Buffer.from('Hello,\n\tworld – ä\n')

type Row = readonly [what: string, bytes: Uint8Array, claimedMime: string | null, claimedType: FileType | null, mime: string, type: FileType]
const ROWS: readonly Row[] = [
  ['bytes before claims', png, 'application/pdf', 'file', 'image/png', 'image'],
  ['bytes without claims', png, null, null, 'image/png', 'image'],
  ['a voice message', ogg, 'audio/ogg', 'audio', 'audio/ogg', 'audio'],
  ['sound in a container for films, as claimed', webm, 'audio/webm', null, 'audio/webm', 'audio'],
  ['a film', webm, null, null, 'video/webm', 'video'],
  ['sound in MP4, as claimed', mp4, 'audio/mp4', null, 'audio/mp4', 'audio'],
  ['a film that claims to be another sound', mp4, 'audio/ogg', null, 'video/mp4', 'video'],
  ['a PDF', Buffer.from('%PDF-1.7\n'), 'text/plain', null, 'application/pdf', 'file'],
  ['an archive', zip, null, null, 'application/zip', 'file'],
  ['a document in an archive, as claimed', zip, 'application/vnd.openxmlformats-officedocument.wordprocessingml.document', null, 'application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'file'],
  ['an archive that claims to be a picture', zip, 'image/png', 'image', 'application/zip', 'file'],
  ['unknown bytes, plausible claim', silk, 'audio/silk', null, 'audio/silk', 'audio'],
  ['unknown bytes, plausible claim with parameters', silk, 'Audio/X-Silk; rate=16000', null, 'audio/x-silk', 'audio'],
  ['unknown bytes, only a type', silk, null, 'audio', 'application/octet-stream', 'audio'],
  ['unknown bytes, no claim', silk, null, null, 'application/octet-stream', 'file'],
  ['unknown bytes, claim that is no media type', silk, 'a b', null, 'application/octet-stream', 'file'],
  ['unknown bytes, claim that would end a header', silk, 'image/png\r\nx: y', null, 'application/octet-stream', 'file'],
  ['unknown bytes, claim of a compound body', silk, 'multipart/x-mixed-replace', null, 'application/octet-stream', 'file'],
  ['text', text, 'text/plain; charset=utf-8', null, 'text/plain', 'file'],
  ['text of another kind', text, 'text/markdown', null, 'text/plain', 'file'],
  ['text without claim', text, null, null, 'application/octet-stream', 'file'],
  ['no text though claimed', Buffer.from([1, 2, 0, 4, 200]), 'text/plain', null, 'application/octet-stream', 'file'],
  ['HTML', Buffer.from('<!doctype html><script>1</script>'), 'text/html', null, 'application/octet-stream', 'file'],
  ['HTML as text', Buffer.from('<!doctype html><script>1</script>'), 'text/plain', null, 'text/plain', 'file'],
  ['SVG', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'), 'image/svg+xml', 'image', 'application/octet-stream', 'file'],
  ['XML by its bytes', Buffer.from('<?xml version="1.0"?><a/>'), 'image/png', 'image', 'application/octet-stream', 'file'],
  ['XML by its claim', Buffer.from('<a/>'), 'application/atom+xml', null, 'application/octet-stream', 'file'],
  ['XHTML', Buffer.from('<a/>'), 'application/xhtml+xml', null, 'application/octet-stream', 'file'],
  ['a script', Buffer.from('1'), 'application/javascript', null, 'application/octet-stream', 'file'],
]

for (const [what, bytes, claimedMime, claimedType, mimeType, type] of ROWS) {
  t.test(`${what}: ${mimeType}, ${type}`, async (t) => {
    t.match(await fileIs(bytes, { claimedMime, claimedType }), { mimeType, type })
  })
}

t.test('bytes that break off anywhere are no trouble', async (t) => {
  for (const whole of [png, ogg, webm, mp4, zip]) {
    for (let length = 0; length <= whole.length; length += 1) t.ok((await fileIs(whole.subarray(0, length), { claimedMime: null, claimedType: null })).mimeType)
  }
})
