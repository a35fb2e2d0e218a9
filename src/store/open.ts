/** `store` of the configuration → a store. */
import { ConfigError } from '../protocol/errors.js'
import { LmdbStore, type LmdbOptions } from './lmdb.js'
import { MemoryStore } from './memory.js'
import type { Store } from './port.js'
import { RedisStore, type RedisOptions } from './redis.js'

export interface StoreOptions extends LmdbOptions {
  /** Default: prefix `xig:`, no replica is waited for. */
  readonly redis?: Pick<RedisOptions, 'prefix' | 'waitReplicas'>
}

/** Opens `memory:`, `lmdb:<folder>` or `redis://…`. Throws ConfigError for anything else, StoreError when it cannot be opened. */
export function openStore(url: string, options: StoreOptions): Store {
  if (url === 'memory:') return new MemoryStore(options.now)
  if (url.startsWith('lmdb:') && url.length > 'lmdb:'.length) return new LmdbStore(url.slice('lmdb:'.length), options)
  if (/^rediss?:\/\//.test(url)) return new RedisStore(url, { prefix: 'xig:', waitReplicas: 0, ...options.redis, ...(options.onUnreadable !== undefined && { onUnreadable: options.onUnreadable }) })
  throw new ConfigError([`store: "${url}" is no store; use memory:, lmdb:<folder> or redis://…`])
}
