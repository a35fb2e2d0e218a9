/** `GET /files/refs/{ref}`, with or without a connector's name before it: the bytes of a file (PROTOCOL "Who dials whom"). */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { isRemote, type FileStore, type RemoteFile, type StoredFile } from '../files/file-store.js'
import type { Result } from '../protocol/errors.js'
import type { RouteName } from '../protocol/ids.js'
import { byteRange, type ByteRange } from './byte-range.js'
import { attachment } from './content-disposition.js'
import { CHANNEL_HEADER } from './file-upload.js'
import { refusal, type HttpAnswer } from './http-answer.js'
import { Outgoing } from './outgoing.js'

export interface FileSource {
  readonly store: FileStore
  /** Gives a remembered file its bytes, once for everybody who asks meanwhile. What the connector answers instead is never passed on. */
  readonly fetchRemote: (file: RemoteFile) => Promise<Result<StoredFile>>
}

interface Asked {
  readonly ref: string
  readonly isHead: boolean
  /** Null = the path had no connector's name. */
  readonly route: RouteName | null
  readonly channelId: string
  readonly range: string
  readonly ifRange: string
}

const NOT_HERE = refusal(404, 'file_not_available', 'there is no file under this reference, or it has expired')

export class FileDownloads {
  constructor(
    private readonly files: FileSource,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** `request` is read during this call only. */
  serve(response: HttpResponse, request: HttpRequest, route: RouteName | null): void {
    const asked: Asked = {
      ref: request.getUrl().split('/').at(-1) ?? '',
      isHead: request.getMethod().toUpperCase() === 'HEAD',
      route,
      channelId: request.getHeader(CHANNEL_HEADER),
      range: request.getHeader('range'),
      ifRange: request.getHeader('if-range'),
    }
    const outgoing = new Outgoing(response, asked.isHead)
    this.#answer(asked, outgoing).catch((error: unknown) => {
      this.failed(error)
      outgoing.answer(refusal(500, 'internal_error'))
    })
  }

  async #answer(asked: Asked, outgoing: Outgoing): Promise<void> {
    const found = this.files.store.find(asked.ref)
    if (found === undefined) return outgoing.answer(NOT_HERE)
    if ((asked.route !== null && asked.route !== found.route) || (asked.channelId !== '' && asked.channelId !== found.channelId)) {
      return outgoing.answer(refusal(403, 'connector_channel_not_owned', 'the file belongs to another channel'))
    }
    const file = isRemote(found) ? await this.#fetched(found) : found
    if (file === null) return outgoing.answer(NOT_HERE)
    await this.#send(file, asked, outgoing)
  }

  async #fetched(file: RemoteFile): Promise<StoredFile | null> {
    const result = await this.files.fetchRemote(file)
    return result.ok ? result.value : null
  }

  async #send(file: StoredFile, { isHead, range: header, ifRange }: Asked, outgoing: Outgoing): Promise<void> {
    const etag = `"${file.sha256}"`
    const range = ifRange === '' || ifRange === etag ? byteRange(header, file.byteSize) : 'all'
    if (range === 'unsatisfiable') return outgoing.answer(refusal(416, 'range_not_satisfiable', undefined, { 'content-range': `bytes */${file.byteSize}` }))
    const { start, end } = range === 'all' ? { start: 0, end: file.byteSize - 1 } : range
    const head = headOf(file, etag, range)
    if (isHead) return outgoing.headOnly(head, end - start + 1)
    const bytes = this.files.store.bytes(file.ref, { start, end })
    try {
      await outgoing.stream(head, end - start + 1, bytes)
    } catch (error) {
      // Removed by another process since it was found.
      if (outgoing.fresh && (error as NodeJS.ErrnoException).code === 'ENOENT') outgoing.answer(NOT_HERE)
      else throw error
    } finally {
      bytes.destroy()
    }
  }
}

function headOf(file: StoredFile, etag: string, range: ByteRange): Omit<HttpAnswer, 'body'> {
  const partial = typeof range === 'object'
  return {
    status: partial ? 206 : 200,
    headers: {
      'content-type': file.mimeType,
      'content-disposition': attachment(file.filename),
      'accept-ranges': 'bytes',
      ...(partial && { 'content-range': `bytes ${range.start}-${range.end}/${file.byteSize}` }),
      etag,
      'cache-control': 'private, no-store',
      // Somebody may open the link in a browser: nothing in the file may run there.
      'content-security-policy': "default-src 'none'; sandbox",
    },
  }
}
