import t from 'tap'
import { openSettings } from '../../src/store/settings.js'
import { StoreError } from '../../src/protocol/errors.js'
import type { Change } from '../../src/core/record.js'

function backing() {
  const values = new Map<string, unknown>()
  return {
    values,
    failing: false,
    read(_kind: string, key: string): unknown {
      if (this.failing) throw new StoreError('store_unavailable', 'gone')
      return values.get(key)
    },
    push(changes: readonly Change[], then: (() => void) | null): void {
      for (const change of changes) if (change.op === 'put') values.set(change.key, change.value); else values.delete(change.key)
      then?.()
    },
  }
}

t.test('a setting is kept, replaced and forgotten', async (t) => {
  const store = backing()
  const settings = openSettings(store)
  t.equal(await settings.get('card'), undefined)
  await settings.set('card', { a: [1] })
  t.strictSame(await openSettings(store).get('card'), { a: [1] })
  t.strictSame([...store.values.keys()], ['setting/card'])
  await settings.delete('card')
  t.equal(await settings.get('card'), undefined)
})

t.test('a read that fails throws instead of saying "never seen"', async (t) => {
  const store = backing()
  const settings = openSettings(store)
  await settings.set('card', 1)
  store.failing = true
  await t.rejects(settings.get('card'), { code: 'store_unavailable' })
})
