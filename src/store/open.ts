/** `store` of the configuration → a store. */
import { ConfigError } from '../protocol/errors.js'
import { LmdbStore, type LmdbOptions } from './lmdb.js'
import { MemoryStore } from './memory.js'
import type { Store } from './port.js'

/** Opens `memory:` or `lmdb:<folder>`. Throws ConfigError for anything else, StoreError when it cannot be opened. */
export function openStore(url: string, options: LmdbOptions): Store {
  if (url === 'memory:') return new MemoryStore(options.now)
  if (url.startsWith('lmdb:') && url.length > 'lmdb:'.length) return new LmdbStore(url.slice('lmdb:'.length), options)
  if (/^rediss?:\/\//.test(url)) throw new ConfigError(['store: redis:// is not yet in this version; use lmdb:<folder>'])
  throw new ConfigError([`store: "${url}" is no store; use memory: or lmdb:<folder>`])
}
