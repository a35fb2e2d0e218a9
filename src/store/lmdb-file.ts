/** One lmdb environment: how it is opened, written in transactions and closed, so that whatever fails is a StoreError. */
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { open, type Database, type RootDatabase, type RootDatabaseOptionsWithPath } from 'lmdb'
import { StoreError } from '../protocol/errors.js'
import { openPrivateFolder } from './data-folder.js'
import type { LeaseRecord } from './lease.js'

const FILE = 'gateway.mdb'
/** How long the reason of a failed commit is waited for: lmdb tells it in the same turn, or never. */
const REASON_WAIT_MS = 1_000

export class LmdbFile {
  readonly records: Database<string, Buffer>
  readonly leases: Database<LeaseRecord, string>
  readonly #root: RootDatabase<string, string>
  readonly #writes = new Set<Promise<unknown>>()
  #closed: Promise<void> | null = null

  /** Opens or makes the store in a folder. `sync`: a write waits for the disk. Throws StoreError when it cannot be opened. */
  constructor(folder: string, sync: boolean) {
    try {
      openPrivateFolder(folder, FILE)
      this.#root = open<string, string>(environment(join(folder, FILE), sync))
      // Binary keys: lmdb's own encoding of strings does not keep the byte order of control characters.
      this.records = this.#root.openDB<string, Buffer>({ name: 'records', encoding: 'string', keyEncoding: 'binary' })
      this.leases = this.#root.openDB<LeaseRecord, string>({ name: 'leases', encoding: 'json' })
    } catch (error) {
      throw new StoreError('store_unavailable', `the store in ${folder} cannot be opened`, { cause: error })
    }
  }

  /**
   * Runs `work` inside a write transaction of lmdb's own batching and resolves with its value when that is durable. A child
   * transaction: what throws in the middle leaves nothing of itself behind, and nothing else of the batch is touched.
   */
  async write<T>(work: () => T): Promise<T> {
    this.checkOpen()
    const written = this.#root.childTransaction(work)
    this.#writes.add(written)
    try {
      return await written
    } catch (error) {
      throw storeError(await reasonOf(error))
    } finally {
      this.#writes.delete(written)
    }
  }

  /** Runs reads; whatever they throw is a StoreError. */
  read<T>(work: () => T): T {
    this.checkOpen()
    try {
      return work()
    } catch (error) {
      throw storeError(error)
    }
  }

  /** Writes something and takes it away again: a full or failing disk is met as by any commit. */
  async probe(): Promise<void> {
    await this.write(() => {
      this.#root.putSync('probe', '')
      this.#root.removeSync('probe')
    })
  }

  /** Waits for what is being written, flushes, closes. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  checkOpen(): void {
    if (this.#closed !== null) throw new StoreError('store_unavailable', 'the store is closed')
  }

  async #close(): Promise<void> {
    await Promise.allSettled([...this.#writes])
    try {
      // After a failed commit lmdb's promise of the flush never settles, and its close waits for it: an empty transaction,
      // which writes nothing and so cannot fail for the disk, brings a new one.
      await this.#root.transaction(() => {})
      await this.#root.flushed
      await this.#root.close()
    } catch (error) {
      throw storeError(await reasonOf(error))
    }
  }
}

/** `permissionsMode` is missing in lmdb's typings. */
function environment(path: string, sync: boolean): RootDatabaseOptionsWithPath & { readonly permissionsMode: number } {
  return {
    path,
    noSubdir: true,
    permissionsMode: 0o600,
    encoding: 'string',
    maxDbs: 4,
    // Without overlap a commit returns when it is on the disk, and fails when it is not; `flushed` would wait for ever then.
    overlappingSync: !sync,
    // With it a failed commit rejects a promise that lmdb keeps to itself, and an unhandled rejection ends the process.
    eventTurnBatching: false,
  }
}

/**
 * lmdb rejects each write of a failed commit with a stand-in; what happened is told by a second promise in it, which must not
 * stay unhandled.
 */
async function reasonOf(error: unknown): Promise<unknown> {
  const told = error instanceof Error && 'commitError' in error ? error.commitError : null
  if (!(told instanceof Promise)) return error
  return Promise.race([told.catch((reason: unknown) => reason), after(REASON_WAIT_MS, error, { ref: false })])
}

function storeError(error: unknown): StoreError {
  return error instanceof StoreError ? error : new StoreError('store_unavailable', 'the store failed', { cause: error })
}
