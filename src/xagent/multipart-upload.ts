/** One `multipart/form-data` body with one file in it (PROTOCOL `POST /files/uploads`). Knows the form, not the socket. */
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy'
import type { StoredFile } from '../files/file-store.js'
import { err, type Result } from '../protocol/errors.js'

export interface UploadedPart {
  readonly filename: string
  readonly mimeType: string
}

export interface MultipartUploadOptions {
  readonly contentType: string
  /** Of the whole body. */
  readonly maxBytes: number
  receive(bytes: AsyncIterable<Uint8Array>, part: UploadedPart, signal: AbortSignal): Promise<Result<StoredFile>>
  /** Takes back what was received, when the rest of the form is wrong. */
  remove(file: StoredFile): Promise<void>
  /** `write` said false, and there is room again. */
  onDrain(): void
}

/** What else may stand in the form: short, and not too much of it. Fields (recipient_ref, reply_token) are not needed here. */
const LIMITS = { fields: 16, files: 4, parts: 20, fieldSize: 16_384, headerPairs: 32, headerSize: 8_192 }

const TEXT = {
  multipart_invalid: 'the body is no multipart/form-data, or does not come to its end',
  file_missing: 'the form has no part named "file"',
  filename_missing: 'the part "file" has no filename',
  file_too_large: 'the body is larger than the limit',
  upload_aborted: 'the body did not come to its end',
} as const

export class MultipartUpload {
  /** Settles when nothing more is to be done: the file is there, or nothing of it is. */
  readonly done: Promise<Result<StoredFile>>
  readonly #abort = new AbortController()
  readonly #parser: BusboyInstance | null
  #settle: (result: Result<StoredFile>) => void = () => {}
  #receiving: Promise<Result<StoredFile>> | null = null
  #ended = false
  #bytes = 0

  constructor(private readonly options: MultipartUploadOptions) {
    this.done = new Promise((resolve) => (this.#settle = resolve))
    this.#parser = this.#newParser()
    if (this.#parser === null) this.#fail('multipart_invalid')
  }

  /** False = wait for `onDrain` before the next one. */
  write(chunk: Buffer): boolean {
    if (this.#ended || this.#parser === null) return true
    this.#bytes += chunk.length
    if (this.#bytes <= this.options.maxBytes) return this.#parser.write(chunk)
    this.#fail('file_too_large')
    return true
  }

  end(): void {
    if (!this.#ended) this.#parser?.end()
  }

  abort(): void {
    this.#fail('upload_aborted')
  }

  #newParser(): BusboyInstance | null {
    const { contentType } = this.options
    if (!/^multipart\/form-data\s*;/i.test(contentType)) return null
    try {
      const parser = Busboy({ headers: { 'content-type': contentType }, limits: LIMITS, preservePath: true })
      return this.#listening(parser)
    } catch {
      return null
    }
  }

  #listening(parser: BusboyInstance): BusboyInstance {
    const invalid = (): void => this.#fail('multipart_invalid')
    parser.on('file', (name, stream, filename: string | undefined, _encoding, mimeType) => this.#part(name, stream, filename, mimeType))
    parser.on('field', (name, _value, _nameTruncated, valueTruncated) => {
      if (name === 'file') this.#fail('filename_missing')
      else if (valueTruncated) invalid()
    })
    for (const event of ['error', 'fieldsLimit', 'filesLimit', 'partsLimit']) parser.on(event, invalid)
    parser.on('drain', () => this.options.onDrain())
    parser.on('finish', () => this.#finished())
    return parser
  }

  #part(name: string | undefined, stream: BusboyFileStream, filename: string | undefined, mimeType: string): void {
    // A part that is cut off says so here too, when nobody reads it any more.
    stream.on('error', () => {})
    if (this.#ended || name !== 'file') return void stream.resume()
    if (this.#receiving !== null) return this.#fail('multipart_invalid')
    if (filename === undefined || filename === '') return this.#fail('filename_missing')
    this.#receiving = this.options.receive(stream, { filename, mimeType }, this.#abort.signal)
    this.#receiving.then((result) => {
      if (!result.ok) this.#end(result)
    }, () => this.#fail('multipart_invalid'))
  }

  #finished(): void {
    if (this.#receiving === null) this.#fail('file_missing')
    else this.#receiving.then((result) => this.#end(result), () => {})
  }

  #fail(code: keyof typeof TEXT): void {
    this.#end(err({ code, message: TEXT[code] }))
  }

  /** The first end counts. */
  #end(result: Result<StoredFile>): void {
    if (this.#ended) return
    this.#ended = true
    if (result.ok) return this.#settle(result)
    this.#abort.abort()
    this.#undone().finally(() => this.#settle(result)).catch(() => {})
  }

  async #undone(): Promise<void> {
    const received = await this.#receiving
    if (received?.ok === true) await this.options.remove(received.value)
  }
}
