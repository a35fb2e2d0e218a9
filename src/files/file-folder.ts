/**
 * The folder of the file store. `<ref>` holds the bytes, `<ref>.json` what is known of them. A file exists once its sidecar is
 * in place, which is renamed there last: whatever kills the process, a file is whole or not there. Nothing else in the folder
 * is touched.
 */
import { createReadStream, readFileSync, rmSync, statSync } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat, writeFile, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { Logger } from '../ops/logger.js'
import { StoreError } from '../protocol/errors.js'
import { openPrivateFolder } from '../store/data-folder.js'
import { isAbandoned, newPartName, refOfPart } from './part-name.js'
import { isRef, isRemote, readSidecar, sidecarText, type StoredFile } from './stored-file.js'

/** A file that is being received. */
export interface Part {
  readonly handle: FileHandle
  /** Puts it into its place. */
  commit(file: StoredFile): Promise<void>
  /** Removes what is not committed; harmless afterwards. */
  discard(): Promise<void>
}

export interface Listing {
  /** Every reference that has a sidecar. */
  readonly present: ReadonlySet<string>
  /** The files among them that were not known. */
  readonly found: readonly StoredFile[]
}

const PART = 'part'
/** Bytes without a sidecar may be those of another process that is about to put it there. */
const ORPHAN_MS = 60_000

export class FileFolder {
  private constructor(
    private readonly dir: string,
    private readonly log: Pick<Logger, 'warn'>,
  ) {}

  /** Throws StoreError when the folder cannot be made or written. */
  static async open(dir: string, log: Pick<Logger, 'warn'>): Promise<FileFolder> {
    try {
      openPrivateFolder(dir, PART)
      await mkdir(join(dir, PART), { recursive: true, mode: 0o700 })
    } catch (error) {
      throw new StoreError('store_unavailable', `the folder ${dir} for files cannot be opened`, { cause: error })
    }
    return new FileFolder(dir, log)
  }

  /** Reads the folder; sidecars of `known` references are not read again. */
  async list(known: ReadonlySet<string>): Promise<Listing> {
    const refs = (await readdir(this.dir)).filter((name) => name.endsWith('.json')).map((name) => name.slice(0, -'.json'.length)).filter(isRef)
    const found = refs.filter((ref) => !known.has(ref)).flatMap((ref) => this.look(ref) ?? [])
    return { present: new Set(refs), found }
  }

  /** One file, if it is there and whole. A damaged one is removed. */
  look(ref: string): StoredFile | undefined {
    try {
      const file = readSidecar(readFileSync(this.#sidecar(ref), 'utf8'), ref)
      if (file !== null && (isRemote(file) || statSync(this.#bytes(ref)).size === file.byteSize)) return file
      this.log.warn({ ref }, 'a stored file is damaged, or its sidecar is: it is removed')
    } catch (error) {
      if (!isMissing(error)) this.log.warn({ err: error, ref }, 'a stored file cannot be read')
      if (!isMissing(error) || !this.#hasSidecar(ref)) return undefined
      this.log.warn({ ref }, 'a stored file has lost its bytes: it is removed')
    }
    rmSync(this.#sidecar(ref), { force: true })
    rmSync(this.#bytes(ref), { force: true })
    return undefined
  }

  async begin(ref: string): Promise<Part> {
    const path = join(this.dir, PART, newPartName(ref))
    const handle = await open(path, 'wx', 0o600)
    let closing: Promise<void> | null = null
    const closed = (): Promise<void> => (closing ??= handle.close())
    return {
      handle,
      commit: async (file) => {
        await closed()
        await writeFile(`${path}.json`, sidecarText(file), { mode: 0o600 })
        await rename(path, this.#bytes(ref))
        await rename(`${path}.json`, this.#sidecar(ref))
      },
      discard: async () => {
        await closed().catch(() => {})
        await Promise.all([rm(path, { force: true }), rm(`${path}.json`, { force: true })])
      },
    }
  }

  /** A sidecar alone: the bytes are elsewhere. */
  async note(file: StoredFile): Promise<void> {
    const path = join(this.dir, PART, `${newPartName(file.ref)}.json`)
    await writeFile(path, sidecarText(file), { mode: 0o600, flag: 'wx' })
    await rename(path, this.#sidecar(file.ref))
  }

  /** `end` is included, as in a Range header. */
  read(ref: string, range?: { readonly start: number; readonly end: number }): Readable {
    // Who reads it is told; one that is not read yet, or not any more, must not end the process with its error.
    return createReadStream(this.#bytes(ref), range).on('error', () => {})
  }

  /** The sidecar goes first: what is killed in between leaves bytes that no one can ask for. */
  async remove(ref: string): Promise<void> {
    await rm(this.#sidecar(ref), { force: true })
    await rm(this.#bytes(ref), { force: true })
  }

  /**
   * Removes what killed processes left. Bytes without a sidecar are spared while they are young, and at the start, too, while a
   * living process is about to put it there.
   */
  async tidy(present: ReadonlySet<string>, now: number, isStart: boolean): Promise<void> {
    const bare = (await readdir(this.dir)).filter((name) => isRef(name) && !present.has(name))
    const committing = new Set<string>()
    for (const name of await readdir(join(this.dir, PART))) {
      const path = join(this.dir, PART, name)
      if (isAbandoned(name, now - (await writtenAt(path)))) await rm(path, { force: true, recursive: true })
      else if (name.endsWith('.json')) committing.add(refOfPart(name))
    }
    for (const ref of bare) {
      if (committing.has(ref) || (!isStart && now - (await writtenAt(this.#bytes(ref))) < ORPHAN_MS)) continue
      if (!this.#hasSidecar(ref)) await rm(this.#bytes(ref), { force: true })
    }
  }

  #hasSidecar(ref: string): boolean {
    return statSync(this.#sidecar(ref), { throwIfNoEntry: false }) !== undefined
  }

  #bytes(ref: string): string {
    return join(this.dir, ref)
  }

  #sidecar(ref: string): string {
    return join(this.dir, `${ref}.json`)
  }
}

/** Unix ms; something that is gone was written now, so nothing is done about it. */
async function writtenAt(path: string): Promise<number> {
  return stat(path).then(({ mtimeMs }) => mtimeMs, () => Infinity)
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
