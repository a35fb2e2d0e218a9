/** A store that can be told to fail, to hold commits back, and to lose its fence. */
import { StoreError } from '../../src/protocol/errors.js'
import type { Store } from '../../src/store/port.js'

export interface Faults {
  /** Every write fails. */
  writes: boolean
  /** Every read fails. */
  reads: boolean
  /** Another owner has come. */
  fenceLost: boolean
  /** Commits that were tried. */
  commits: number
}

export function faultyStore(faults: Faults): (store: Store) => Store {
  const gone = () => new StoreError('store_unavailable', 'the disk is gone, says the test')
  return (store) => ({
    acquire: (route, leaseMs) => store.acquire(route, leaseMs),
    renew: async (fence, leaseMs) => {
      if (faults.fenceLost) throw new StoreError('fence_lost', 'another owner, says the test')
      return store.renew(fence, leaseMs)
    },
    release: (fence) => store.release(fence),
    get(route, kind, key) {
      if (faults.reads) throw gone()
      return store.get(route, kind, key)
    },
    list: (route, kind, options) => (faults.reads ? Promise.reject(gone()) : store.list(route, kind, options)),
    count: (route, kind) => (faults.reads ? Promise.reject(gone()) : store.count(route, kind)),
    async commit(changes, fence) {
      faults.commits += 1
      if (faults.fenceLost) throw new StoreError('fence_lost', 'another owner, says the test')
      if (faults.writes) throw gone()
      return store.commit(changes, fence)
    },
    routes: () => store.routes(),
    probe: async () => {
      if (faults.writes) throw gone()
      return store.probe()
    },
    close: () => store.close(),
  })
}
