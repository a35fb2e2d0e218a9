/**
 * Files that xAgent and people send through the gateway (DESIGN §3 Files): staged or copied into one folder, bounded in size
 * and age, handed out by an unguessable reference.
 */
import type { Readable } from 'node:stream'
import type { Logger } from '../ops/logger.js'
import { err, ok, StoreError, type Result } from '../protocol/errors.js'
import { claimedIs, fileIs } from './file-kind.js'
import { FileFolder, type Part } from './file-folder.js'
import { safeFilename, standInName } from './filename.js'
import { abandon, codeOf, fileError, takeIn, type TakenIn } from './intake.js'
import { isRef, isRemote, newRef, type FileFacts, type FileKind, type RemoteFile, type StoredFile } from './stored-file.js'

export { isRemote, type FileFacts, type FileKind, type FileType, type RemoteFile, type StoredFile } from './stored-file.js'

export interface FileStoreOptions {
  /** Made if it is not there, private to its owner. */
  readonly dir: string
  readonly ttlMs: number
  readonly maxFileBytes: number
  /** Of all files together, those that are being received included. */
  readonly maxTotalBytes: number
  /** Unix ms. */
  now(): number
  readonly log: Pick<Logger, 'warn' | 'error'>
}

export interface ReceiveOptions {
  /** The reference of a remembered file that gets its bytes now; default a new one. */
  readonly ref?: string
  /** A limit below that of the store. */
  readonly maxBytes?: number
  readonly signal?: AbortSignal
}

export interface RememberOptions {
  /** Default a new one. */
  readonly ref?: string
  /** Unix ms. */
  readonly expiresAt?: number
}

/** What a file without bytes counts for: its sidecar takes a block of the disk. */
const REMEMBERED_BYTES = 4_096

export class FileStore {
  readonly #files = new Map<string, StoredFile>()
  readonly #usage: Record<FileKind, number> = { staged: 0, inbound: 0 }
  readonly #running = new Map<AbortController, Promise<unknown>>()
  #receivingBytes = 0
  /** Files without bytes. */
  #remembered = 0
  #closed = false

  private constructor(
    private readonly folder: FileFolder,
    private readonly options: FileStoreOptions,
  ) {}

  /** Opens a folder and removes half files from it. Throws StoreError when it cannot be used. */
  static async open(options: FileStoreOptions): Promise<FileStore> {
    const store = new FileStore(await FileFolder.open(options.dir, options.log), options)
    try {
      await store.#synchronise(true)
    } catch (error) {
      throw new StoreError('store_unavailable', `the folder ${options.dir} for files cannot be read`, { cause: error })
    }
    return store
  }

  /** Bytes of the files that are there. */
  get usage(): { readonly staged: number; readonly inbound: number } {
    return { ...this.#usage }
  }

  get maxFileBytes(): number {
    return this.options.maxFileBytes
  }

  /** How much more fits now. */
  get freeBytes(): number {
    return Math.max(0, this.options.maxTotalBytes - this.#usage.staged - this.#usage.inbound - this.#receivingBytes - this.#remembered * REMEMBERED_BYTES)
  }

  newRef(): string {
    return newRef()
  }

  /**
   * Streams a file into the store. Errors: file_too_large, file_store_full, file_empty, upload_aborted, file_unreadable; then
   * nothing of it stays. With the `ref` of a remembered file, route, channel and expiry stay those of that file.
   */
  async receive(source: AsyncIterable<Uint8Array>, facts: FileFacts, options: ReceiveOptions = {}): Promise<Result<StoredFile>> {
    const ref = options.ref ?? this.newRef()
    if (!isRef(ref)) throw new TypeError('not a reference of this store')
    const abort = new AbortController()
    const onAbort = (): void => abort.abort()
    if (this.#closed || options.signal?.aborted === true) onAbort()
    options.signal?.addEventListener('abort', onAbort)
    const work = this.#receive(source, ref, facts, options.maxBytes ?? Infinity, abort.signal)
    this.#running.set(abort, work)
    try {
      return await work
    } finally {
      this.#running.delete(abort)
      options.signal?.removeEventListener('abort', onAbort)
    }
  }

  /**
   * Notes a file whose bytes are fetched when they are asked for; with the `ref` of an earlier one it takes that one's place.
   * Throws StoreError when that cannot be written, or nothing more fits.
   */
  async remember(facts: FileFacts, source: unknown, { ref = this.newRef(), expiresAt = this.options.now() + this.options.ttlMs }: RememberOptions = {}): Promise<RemoteFile> {
    if (!isRef(ref)) throw new TypeError('not a reference of this store')
    if (!this.#files.has(ref) && this.freeBytes < REMEMBERED_BYTES) throw new StoreError('store_unavailable', 'no further file fits into files.max_total_bytes')
    const { mimeType, type, extension } = claimedIs(facts)
    const { route, channelId, kind } = facts
    const filename = safeFilename(facts.filename) ?? standInName(type, extension)
    const file: RemoteFile = { ref, route, channelId, kind, type, mimeType, filename, byteSize: 0, sha256: '', expiresAt, remote: source }
    try {
      await this.folder.note(file)
    } catch (error) {
      throw new StoreError('store_unavailable', 'a file cannot be remembered', { cause: error })
    }
    this.#put(file)
    return file
  }

  /** The file of a reference, until it expires. One that another process has put into a shared folder is found, too. */
  find(ref: string): StoredFile | RemoteFile | undefined {
    if (!isRef(ref)) return undefined
    const known = this.#files.get(ref)
    if (known === undefined || isRemote(known)) this.#look(ref)
    const file = this.#files.get(ref)
    return file !== undefined && file.expiresAt > this.options.now() ? file : undefined
  }

  /** The bytes, or those from `start` to `end`, both included. The stream fails when the file is not here. */
  bytes(ref: string, range?: { readonly start: number; readonly end: number }): Readable {
    return this.folder.read(isRef(ref) ? ref : 'file_', range)
  }

  async remove(ref: string): Promise<void> {
    if (!isRef(ref)) return
    this.#drop(ref)
    await this.folder.remove(ref)
  }

  /** Removes what has expired and what killed processes left; sees what other processes did in the same folder. */
  async sweep(): Promise<void> {
    await this.#synchronise(false)
  }

  /** Aborts what is being received and waits until nothing is left of it. */
  async close(): Promise<void> {
    this.#closed = true
    for (const abort of this.#running.keys()) abort.abort()
    await Promise.allSettled(this.#running.values())
  }

  async #receive(source: AsyncIterable<Uint8Array>, ref: string, facts: FileFacts, maxBytes: number, signal: AbortSignal): Promise<Result<StoredFile>> {
    let part: Part | null = null
    let reserved = 0
    const take = (bytes: number): boolean => {
      if (bytes > this.freeBytes) return false
      reserved += bytes
      this.#receivingBytes += bytes
      return true
    }
    try {
      part = await this.folder.begin(ref)
      const taken = await takeIn(source, part.handle, { maxBytes: Math.min(maxBytes, this.options.maxFileBytes), take, signal, onDiskFault: (error) => this.#fault(error, ref) })
      if (!taken.ok) return taken
      const file = await this.#described(ref, facts, taken.value)
      if (signal.aborted) return err(fileError('upload_aborted'))
      await part.commit(file)
      this.#put(file)
      return ok(file)
    } catch (error) {
      this.#fault(error, ref)
      return err(fileError(codeOf(error)))
    } finally {
      abandon(source)
      await part?.discard().catch((error: unknown) => this.#fault(error, ref))
      this.#receivingBytes -= reserved
    }
  }

  async #described(ref: string, facts: FileFacts, { byteSize, sha256, sample }: TakenIn): Promise<StoredFile> {
    const remembered = this.#files.get(ref)
    const { mimeType, type, extension } = await fileIs(sample, facts)
    const { route, channelId, kind } = remembered ?? facts
    const filename = safeFilename(facts.filename) ?? remembered?.filename ?? standInName(type, extension)
    return { ref, route, channelId, kind, type, mimeType, filename, byteSize, sha256, expiresAt: remembered?.expiresAt ?? this.options.now() + this.options.ttlMs }
  }

  async #synchronise(isStart: boolean): Promise<void> {
    const known = new Set(this.#files.keys())
    const { present, found } = await this.folder.list(known)
    for (const ref of known) if (!present.has(ref)) this.#drop(ref)
    for (const file of found) this.#put(file)
    await this.folder.tidy(present, Date.now(), isStart)
    const expired = [...this.#files.values()].filter(({ expiresAt }) => expiresAt <= this.options.now())
    for (const { ref } of expired) await this.remove(ref)
  }

  #look(ref: string): void {
    const seen = this.folder.look(ref)
    if (seen === undefined) this.#drop(ref)
    else this.#put(seen)
  }

  #put(file: StoredFile): void {
    this.#drop(file.ref)
    this.#files.set(file.ref, file)
    this.#usage[file.kind] += file.byteSize
    if (isRemote(file)) this.#remembered += 1
  }

  #drop(ref: string): void {
    const file = this.#files.get(ref)
    if (file === undefined) return
    this.#files.delete(ref)
    this.#usage[file.kind] -= file.byteSize
    if (isRemote(file)) this.#remembered -= 1
  }

  #fault(error: unknown, ref: string): void {
    this.options.log.error({ err: error, ref }, 'a file could not be stored')
  }
}
