import t from 'tap'
import fc from 'fast-check'
import { safeFilename } from '../../src/files/filename.js'
import { attachment } from '../../src/xagent/content-disposition.js'
import { facts, pieces, rig, taken } from './store-rig.js'

const ROWS: readonly (readonly [string | null, string | null])[] = [
  ['report.pdf', 'report.pdf'],
  ['Отчёт 报告.pdf', 'Отчёт 报告.pdf'],
  ['/etc/passwd', 'passwd'],
  ['../../x.txt', 'x.txt'],
  ['..\\..\\windows\\x.exe', 'x.exe'],
  ['..', null],
  ['a/..', null],
  ['a/', null],
  ['', null],
  [' . ', null],
  [null, null],
  ['a\r\nset-cookie: b.txt', 'aset-cookie: b.txt'],
  ['a\u0000b.png', 'ab.png'],
  ['invoice\u202efdp.exe', 'invoicefdp.exe'],
  ['x\ud800y', 'x\ufffdy'],
  [`${'a'.repeat(300)}.pdf`, `${'a'.repeat(196)}.pdf`],
  [`${'界'.repeat(100)}.jpeg`, `${'界'.repeat(65)}.jpeg`],
]

for (const [given, name] of ROWS) t.test(`${JSON.stringify(given)?.slice(0, 40)} → ${name?.slice(0, 40)}`, async (t) => t.equal(safeFilename(given), name))

t.test('whatever the name: no path, nothing hidden, 200 bytes', async () => {
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (given) => {
    const name = safeFilename(given)
    return name === null || (Buffer.byteLength(name) <= 200 && name !== '' && name !== '..' && !/[/\\\p{Cc}\u202e]/u.test(name))
  }))
})

t.test('a file without a name is called by what it is', async (t) => {
  const { store } = await rig(t)
  const named = async (bytes: string, claimedMime: string | null) => taken(await store.receive(pieces(bytes), facts({ filename: null, claimedMime }))).filename
  t.equal(await named('%PDF-1.7\n', null), 'file.pdf')
  t.equal(await named('GIF89a\u0001\u0000', null), 'image.gif')
  t.equal(await named('???', 'audio/silk'), 'audio.silk')
  t.equal(await named('???', 'text/plain'), 'file.txt')
  t.equal(await named('???', null), 'file.bin')
})

t.test('Content-Disposition: an ASCII name, and the whole one in UTF-8 (RFC 5987)', async (t) => {
  t.equal(attachment('a b.txt'), 'attachment; filename="a b.txt"; filename*=UTF-8\'\'a%20b.txt')
  t.equal(attachment('报告"\\%(1)*\'.txt'), 'attachment; filename="_____(1)*\'.txt"; filename*=UTF-8\'\'%E6%8A%A5%E5%91%8A%22%5C%25%281%29%2A%27.txt')
  t.equal(attachment('😀'), 'attachment; filename="_"; filename*=UTF-8\'\'%F0%9F%98%80')
})
