import t from 'tap'
import fc from 'fast-check'
import { splitText } from '../../src/translate/reply-plan.js'

const limit = (max: number, unit: 'utf16' | 'code_points' | 'bytes' = 'utf16') => ({ max, unit })
const lengthOf = (text: string, unit: string) => (unit === 'utf16' ? text.length : unit === 'bytes' ? Buffer.byteLength(text) : [...text].length)

t.test('a text within the limit is one part', async (t) => {
  t.strictSame(splitText('short', limit(5)), ['short'])
})

t.test('cuts at the last paragraph that fits, then at a line, a sentence, a space, a code point', async (t) => {
  t.strictSame(splitText('one two.\n\nthree. four', limit(16)), ['one two.', 'three. four'])
  t.strictSame(splitText('one two\nthree. four', limit(14)), ['one two', 'three. four'])
  t.strictSame(splitText('One two. Three four', limit(15)), ['One two.', 'Three four'])
  t.strictSame(splitText('one two three', limit(9)), ['one two', 'three'])
  t.strictSame(splitText('onetwothree', limit(6)), ['onetwo', 'three'])
  t.strictSame(splitText('你好。世界', limit(4)), ['你好。', '世界'])
})

t.test('never inside a code point', async (t) => {
  t.strictSame(splitText('😀😀😀', limit(3)), ['😀', '😀', '😀'])
  t.strictSame(splitText('ééé', limit(4, 'bytes')), ['éé', 'é'])
})

t.test('no part is white space alone', async (t) => {
  t.strictSame(splitText('   \n\n  ', limit(10)), [])
  t.strictSame(splitText(`a${' '.repeat(50)}b`, limit(10)), ['a', 'b'])
})

t.test('every part is within the limit, and no word is lost', async (t) => {
  const texts = fc.oneof(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' }), fc.array(fc.constantFrom('word', 'sentence.', '\n\n', '\n', ' ', '😀', '。', 'longerwordhere')).map((words) => words.join(' ')))
  fc.assert(fc.property(texts, fc.integer({ min: 4, max: 60 }), fc.constantFrom('utf16', 'code_points', 'bytes' as const), (text, max, unit) => {
    const parts = splitText(text, limit(max, unit as 'utf16'))
    for (const part of parts) {
      if (lengthOf(part, unit) > max) throw new Error(`part of ${lengthOf(part, unit)} ${unit}`)
      if (part.trim() === '') throw new Error('white space alone')
    }
    const squeezed = (words: string) => words.replace(/\s+/gu, '')
    t.equal(squeezed(parts.join('')), squeezed(text.toWellFormed()))
  }), { numRuns: 1_000 })
})
