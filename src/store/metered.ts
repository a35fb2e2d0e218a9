/** Any store, with its operations timed and its failures counted (`store_seconds`, `store_errors_total`). */
import type { Clock } from '../ops/clock.js'
import type { Metrics } from '../ops/metrics.js'
import type { StoreOp } from '../ops/metric-labels.js'
import type { Store } from './port.js'

/** Synchronous reads are counted when they fail, not timed: a clock would cost more than they do. */
export function meteredStore(store: Store, metrics: Metrics, clock: Clock): Store {
  const timed = async <T>(op: StoreOp, work: Promise<T>): Promise<T> => {
    const startedAt = clock.monotonic()
    try {
      const value = await work
      metrics.storeDone(op, clock.monotonic() - startedAt)
      return value
    } catch (error) {
      metrics.storeFailed(op)
      throw error
    }
  }
  return {
    acquire: (route, leaseMs) => timed('acquire', store.acquire(route, leaseMs)),
    renew: (fence, leaseMs) => timed('renew', store.renew(fence, leaseMs)),
    release: (fence) => timed('release', store.release(fence)),
    get(route, kind, key) {
      try {
        const value = store.get(route, kind, key)
        return value instanceof Promise ? timed('get', value) : value
      } catch (error) {
        metrics.storeFailed('get')
        throw error
      }
    },
    list: (route, kind, options) => timed('list', store.list(route, kind, options)),
    count: (route, kind) => timed('count', store.count(route, kind)),
    commit: (changes, fence) => timed('commit', store.commit(changes, fence)),
    routes: () => store.routes(),
    probe: () => timed('probe', store.probe()),
    close: () => store.close(),
  }
}
