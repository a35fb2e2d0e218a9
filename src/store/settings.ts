/**
 * What is plain key-value (the Card, DESIGN §7), through Keyv over the route's own store: written in the same order and under
 * the same fence as everything else. A read that fails throws; Keyv's default would take it for "never seen".
 */
import { EventEmitter } from 'node:events'
import { Keyv, type KeyvStoreAdapter } from 'keyv'
import type { Change } from '../core/record.js'

/** Where settings are kept: what a route's commit queue offers. */
export interface SettingsBacking {
  read(kind: 'route', key: string): unknown
  push(changes: readonly Change[], then: (() => void) | null): void
}

const keyOf = (name: string): string => `setting/${name}`

/** Settings of one route. `get` rejects with StoreError when the store cannot be read; `set` resolves when it is durable. */
export function openSettings(backing: SettingsBacking): Keyv {
  return new Keyv({ store: new Adapter(backing), throwOnErrors: true, useKeyPrefix: false })
}

class Adapter extends EventEmitter implements KeyvStoreAdapter {
  readonly opts = {}
  namespace?: string

  constructor(private readonly backing: SettingsBacking) {
    super()
  }

  async get<Value>(key: string): Promise<Value | undefined> {
    return (await this.backing.read('route', keyOf(key))) as Value | undefined
  }

  async set(key: string, value: unknown): Promise<void> {
    await this.#durable({ op: 'put', kind: 'route', key: keyOf(key), value })
  }

  async delete(key: string): Promise<boolean> {
    await this.#durable({ op: 'delete', kind: 'route', key: keyOf(key) })
    return true
  }

  /** Keyv asks for it; nothing here forgets everything at once. */
  async clear(): Promise<void> {
    throw new Error('settings are forgotten one by one')
  }

  #durable(change: Change): Promise<void> {
    return new Promise((resolve) => this.backing.push([change], resolve))
  }
}
