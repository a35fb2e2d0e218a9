/** Bytes on their way from somewhere to the disk: counted, hashed, bounded, one piece in memory at a time. */
import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { err, ok, type Result, type WireError } from '../protocol/errors.js'
import { SAMPLE_BYTES } from './file-kind.js'

export interface IntakeLimits {
  readonly maxBytes: number
  /** Takes room in the whole store; false when it is full. */
  readonly take: (bytes: number) => boolean
  readonly signal: AbortSignal
  /** The disk would not take it; what the source says is no news. */
  readonly onDiskFault: (error: unknown) => void
}

export interface TakenIn {
  readonly byteSize: number
  readonly sha256: string
  /** The beginning. */
  readonly sample: Uint8Array
}

/** Every way in which a file cannot be taken. */
export const FILE_ERRORS = {
  file_too_large: 'the file is larger than the limit',
  file_store_full: 'there is no room for more files now',
  file_empty: 'the file holds no byte',
  upload_aborted: 'the file did not come to its end',
  file_unreadable: 'the file could not be read or written',
} as const

export type FileErrorCode = keyof typeof FILE_ERRORS

export const fileError = (code: FileErrorCode): WireError => ({ code, message: FILE_ERRORS[code] })

const ABORTED = Symbol('aborted')
const DISK_FULL: readonly string[] = ['ENOSPC', 'EDQUOT', 'EFBIG']

/** Writes everything that `source` gives, as fast as the disk takes it. A source that is not read to its end is told so. */
export async function takeIn(source: AsyncIterable<Uint8Array>, handle: FileHandle, limits: IntakeLimits): Promise<Result<TakenIn>> {
  const hash = createHash('sha256')
  const sample: Uint8Array[] = []
  let byteSize = 0
  const pieces = piecesOf(source, limits.signal)
  try {
    for (let piece = await pieces.next(); piece.done !== true; piece = await pieces.next()) {
      const bytes = piece.value
      if (byteSize + bytes.length > limits.maxBytes) return err(fileError('file_too_large'))
      if (!limits.take(bytes.length)) return err(fileError('file_store_full'))
      // Copied: a piece may be a view of a far larger buffer.
      if (byteSize < SAMPLE_BYTES) sample.push(Uint8Array.from(bytes.subarray(0, SAMPLE_BYTES - byteSize)))
      byteSize += bytes.length
      hash.update(bytes)
      await handle.appendFile(bytes).catch((error: unknown) => {
        limits.onDiskFault(error)
        throw error
      })
    }
  } catch (error) {
    return err(fileError(codeOf(error)))
  } finally {
    pieces.leave()
  }
  return byteSize === 0 ? err(fileError('file_empty')) : ok({ byteSize, sha256: hash.digest('hex'), sample: Buffer.concat(sample) })
}

/** What a failed read or write means. */
export function codeOf(error: unknown): FileErrorCode {
  if (error === ABORTED) return 'upload_aborted'
  return error instanceof Error && 'code' in error && DISK_FULL.includes(String(error.code)) ? 'file_store_full' : 'file_unreadable'
}

/** An iterator that an abort ends at once, even while the source gives nothing. */
function piecesOf(source: AsyncIterable<Uint8Array>, signal: AbortSignal): { next(): Promise<IteratorResult<Uint8Array>>; leave(): void } {
  const iterator = source[Symbol.asyncIterator]()
  let abort = (): void => {}
  const onAbort = (): void => abort()
  signal.addEventListener('abort', onAbort)
  return {
    next: () => new Promise((resolve, reject) => {
      abort = () => reject(ABORTED)
      if (signal.aborted) abort()
      else iterator.next().then(resolve, reject)
    }),
    leave() {
      signal.removeEventListener('abort', onAbort)
      iterator.return?.().catch(() => {})
    },
  }
}

/** Ends a source that nobody reads on. An iterator that was never asked for anything does not end its stream itself. */
export function abandon(source: AsyncIterable<Uint8Array>): void {
  if (source instanceof Readable && !source.readableEnded) source.on('error', () => {}).destroy()
}
