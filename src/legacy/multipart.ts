/** A multipart body around one streamed file, with its length known before the first byte (docs/legacy.md: a body must name it). */
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'

export interface MultipartFile {
  readonly body: AsyncIterable<Uint8Array>
  readonly byteSize: number
  readonly filename: string
  readonly mimeType: string
}

export interface MultipartBody {
  readonly stream: Readable
  readonly contentType: string
  readonly byteSize: number
}

/** `fields` come before the file, so that a receiver knows them when the bytes begin. */
export function multipart(file: MultipartFile, fields: Readonly<Record<string, string>>): MultipartBody {
  const boundary = `xig-${randomBytes(18).toString('hex')}`
  const parts = Object.entries(fields).map(([name, value]) => `--${boundary}\r\nContent-Disposition: form-data; name="${quoted(name)}"\r\n\r\n${value}\r\n`)
  const head = Buffer.from(
    `${parts.join('')}--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${quoted(file.filename)}"\r\nContent-Type: ${file.mimeType}\r\n\r\n`,
  )
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  return {
    stream: Readable.from(pieces(head, file.body, tail), { objectMode: false }),
    contentType: `multipart/form-data; boundary=${boundary}`,
    byteSize: head.length + file.byteSize + tail.length,
  }
}

async function* pieces(head: Buffer, body: AsyncIterable<Uint8Array>, tail: Buffer): AsyncGenerator<Uint8Array> {
  yield head
  yield* body
  yield tail
}

/** As browsers do: quotes and line ends percent-encoded, everything else as it is in UTF-8. */
function quoted(text: string): string {
  return text.replace(/["\r\n]/g, (character) => encodeURIComponent(character))
}
