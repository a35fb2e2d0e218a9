/** `POST /<name>/files/uploads`: a file that xAgent is going to send, staged for one channel (PROTOCOL "Who dials whom"). */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import type { FileStore, StoredFile } from '../files/file-store.js'
import type { WireError } from '../protocol/errors.js'
import type { ChannelId } from '../protocol/ids.js'
import { BodyExchange } from './body-exchange.js'
import { refusal, type HttpAnswer } from './http-answer.js'
import { MultipartUpload } from './multipart-upload.js'
import type { NorthRoute } from './port.js'

export interface UploadContext {
  readonly store: FileStore
  readonly failed: (error: unknown) => void
}

/** The header that names the channel of a file. */
export const CHANNEL_HEADER = 'x-xagent-connector-channel-id'
/** What a form around a file may take. */
const FORM_BYTES = 256 * 1024
const STATUS: Readonly<Record<string, number>> = { file_too_large: 413, file_store_full: 507, file_unreadable: 500, upload_aborted: 503 }

/** `request` is read during this call only. */
export function serveUpload(response: HttpResponse, request: HttpRequest, route: NorthRoute, context: UploadContext): void {
  const { store } = context
  const length = request.getHeader('content-length')
  const exchange = new BodyExchange(response, length === '' ? NaN : Number(length), context.failed)
  const channel = admitted(request, route, store)
  if ('refused' in channel) {
    exchange.read({ data: () => {}, end: () => {}, aborted: () => {} })
    return exchange.answer(channel.refused)
  }
  const upload = new MultipartUpload({
    contentType: request.getHeader('content-type'),
    maxBytes: store.maxFileBytes + FORM_BYTES,
    receive: (bytes, part, signal) => store.receive(bytes, {
      route: route.name, channelId: channel.id, kind: 'staged', filename: part.filename, claimedMime: part.mimeType, claimedType: null,
    }, { signal }),
    remove: (file) => store.remove(file.ref),
    onDrain: () => exchange.resume(),
  })
  exchange.read({
    data: (chunk) => {
      if (!upload.write(chunk)) exchange.pause()
    },
    end: () => upload.end(),
    aborted: () => upload.abort(),
  })
  upload.done.then((result) => exchange.answer(result.ok ? accepted(result.value) : refused(result.error))).catch(context.failed)
}

/** What can be said before the first byte of the body. */
function admitted(request: HttpRequest, route: NorthRoute, store: FileStore): { readonly id: ChannelId } | { readonly refused: HttpAnswer } {
  const named = request.getHeader(CHANNEL_HEADER)
  const length = request.getHeader('content-length')
  if (named === '') return { refused: refusal(400, 'connector_channel_id_required', `the header ${CHANNEL_HEADER} names the channel of the file`) }
  const id = route.ownsChannel(named)
  if (id === null) return { refused: refusal(404, 'unknown_channel', 'this connector has no such channel') }
  if (length === '' && request.getHeader('transfer-encoding') === '') return { refused: refusal(411, 'length_required') }
  if (Number(length) > store.maxFileBytes + FORM_BYTES) return { refused: refused({ code: 'file_too_large', message: `a file may have ${store.maxFileBytes} bytes` }) }
  if (Number(length) - FORM_BYTES > store.freeBytes) return { refused: refused({ code: 'file_store_full', message: 'there is no room for more files now' }) }
  return { id }
}

function accepted({ ref, type, filename, byteSize, expiresAt }: StoredFile): HttpAnswer {
  const body = JSON.stringify({ file_ref: ref, file_type: type, filename, byte_size: byteSize, expires_at: expiresAt })
  return { status: 200, headers: { 'content-type': 'application/json', 'cache-control': 'no-store' }, body }
}

function refused({ code, message }: WireError): HttpAnswer {
  return refusal(STATUS[code] ?? 400, code, message)
}
