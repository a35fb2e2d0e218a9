import t from 'tap'
import { overlaid, PendingChanges } from '../../src/store/pending-changes.js'

t.test('shows the latest change of a key until its batch is settled', async (t) => {
  const pending = new PendingChanges()
  const first = pending.add([{ key: 'k', text: '1' }])
  const second = pending.add([{ key: 'k', text: null }, { key: 'other', text: '2' }])
  t.match(pending.get('k'), { text: null })
  first()
  t.match(pending.get('k'), { text: null })
  second()
  t.equal(pending.get('k'), undefined)
  t.strictSame(pending.within(''), [])
})

t.test('a batch that fails before an earlier one is written uncovers what that one changed', async (t) => {
  const pending = new PendingChanges()
  const first = pending.add([{ key: 'k', text: '1' }])
  const second = pending.add([{ key: 'k', text: '2' }])
  const third = pending.add([{ key: 'k', text: '3' }])
  second()
  t.match(pending.get('k'), { text: '3' })
  third()
  t.match(pending.get('k'), { text: '1' })
  first()
  t.equal(pending.get('k'), undefined)
})

t.test('the last of two changes of one key in one batch counts', async (t) => {
  const pending = new PendingChanges()
  const settled = pending.add([{ key: 'k', text: '1' }, { key: 'k', text: '2' }])
  t.match(pending.get('k'), { text: '2' })
  settled()
  t.equal(pending.get('k'), undefined)
})

t.test('lays changes over what is stored in the order of the keys', async (t) => {
  const stored = ['b', 'd', 'f'].map((key) => ({ key, text: 'stored' }))
  const changes = [{ key: 'a', text: 'new' }, { key: 'b', text: null }, { key: 'c', text: 'new' }, { key: 'f', text: 'newer' }, { key: 'g', text: 'new' }, { key: 'h', text: null }]
  t.strictSame([...overlaid(stored, changes)].map(({ key, text }) => `${key} ${text}`), ['a new', 'c new', 'd stored', 'f newer', 'g new'])
  t.strictSame([...overlaid([], changes)].length, 4)
  t.strictSame([...overlaid(stored, [])], stored)
})
