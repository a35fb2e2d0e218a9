/** A file store in a folder of its own, and sources of bytes. */
import { readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import { FileStore, type FileFacts, type FileStoreOptions, type StoredFile } from '../../src/files/file-store.js'
import type { Result } from '../../src/protocol/errors.js'
import type { ChannelId, RouteName } from '../../src/protocol/ids.js'

export const HOUR = 3_600_000

export interface Rig {
  readonly dir: string
  readonly store: FileStore
  /** What was logged. */
  readonly lines: { readonly fields: Record<string, unknown>; readonly text: string }[]
  now: number
  /** Another store on the same folder. */
  again(more?: Partial<FileStoreOptions>): Promise<FileStore>
  /** Everything in the folder, `part/` included. */
  names(): string[]
}

export async function temporaryFolder(t: Pick<Test, 'teardown'>): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'xig-files-'))
  t.teardown(() => rm(made, { recursive: true, force: true }))
  return made
}

export async function rig(t: Test, more: Partial<FileStoreOptions> = {}): Promise<Rig> {
  const dir = join(await temporaryFolder(t), 'files')
  const lines: Rig['lines'] = []
  const line = (fields: unknown, text?: string): void => void lines.push({ fields: fields as Record<string, unknown>, text: text ?? '' })
  const log = { warn: line, error: line } as unknown as FileStoreOptions['log']
  const open = (others: Partial<FileStoreOptions>): Promise<FileStore> =>
    FileStore.open({ dir, ttlMs: HOUR, maxFileBytes: 1_000_000, maxTotalBytes: 10_000_000, now: () => made.now, log, ...more, ...others })
  const made: { -readonly [K in keyof Rig]: Rig[K] } = {
    dir, lines, now: 1_790_000_000_000, store: null as unknown as FileStore,
    again: (others = {}) => open(others),
    names: () => readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((name) => name !== 'part').sort(),
  }
  made.store = await open({})
  return made
}

export const facts = (changes: Partial<FileFacts> = {}): FileFacts => ({
  route: 'telegram' as RouteName, channelId: 'cch_1' as ChannelId, kind: 'staged', filename: 'a.bin', claimedMime: null, claimedType: null, ...changes,
})

/** A source that gives these pieces. */
export async function* pieces(...given: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const piece of given) yield typeof piece === 'string' ? Buffer.from(piece) : piece
}

/** A source whose next piece is given by hand; `ended` = whoever read it has let it go. */
export class ManualSource implements AsyncIterable<Uint8Array> {
  ended = false
  #queue: Uint8Array[] = []
  #asking: ((step: IteratorResult<Uint8Array>) => void) | null = null
  #asked: (() => void)[] = []

  give(bytes: string): void {
    const chunk = Buffer.from(bytes)
    const asking = this.#asking
    this.#asking = null
    if (asking === null) this.#queue.push(chunk)
    else asking({ done: false, value: chunk })
  }

  end(): void {
    this.#asking?.({ done: true, value: undefined })
  }

  /** Resolves when everything given was taken, and more is asked for. */
  async hungry(): Promise<void> {
    if (this.#asking === null) await new Promise<void>((resolve) => this.#asked.push(resolve))
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return {
      next: () => new Promise((resolve) => {
        const value = this.#queue.shift()
        if (value !== undefined) return resolve({ done: false, value })
        this.#asking = resolve
        for (const tell of this.#asked.splice(0)) tell()
      }),
      return: async () => {
        this.ended = true
        return { done: true, value: undefined }
      },
    }
  }
}

export const contentOf = async (store: FileStore, ref: string, range?: { start: number; end: number }): Promise<string> => (await buffer(store.bytes(ref, range))).toString()

/** The file of a result that must be one. */
export function taken(result: Result<StoredFile>): StoredFile {
  if (!result.ok) throw new Error(`not taken: ${result.error.code}`)
  return result.value
}
