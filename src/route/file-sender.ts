/** Files on their way to a person: uploaded to the connector when their step's turn comes (DESIGN §5). */
import type { UploadResult } from '../core/event.js'
import { isRemote, type RemoteFile, type StoredFile } from '../files/stored-file.js'
import type { LegacyFiles, TransferFailure } from '../legacy/files.js'
import { err, type Result } from '../protocol/errors.js'
import type { Entry } from './channel-table.js'
import type { RouteContext, RouteFiles } from './context.js'

/** What reading a file says that is not there, in the words of the system. */
const BYTES_GONE = 'ENOENT'
const NOT_AVAILABLE = err<TransferFailure>({ code: 'file_not_available', retry: false })

export class FileSender {
  constructor(
    private readonly context: RouteContext,
    private readonly files: RouteFiles,
    /** Copies a file that was only remembered. */
    private readonly remote: (file: RemoteFile) => Promise<Result<StoredFile>>,
  ) {}

  /** Uploads one step's file. Nothing has reached the person yet, so a failure is never in doubt. */
  async step(entry: Entry, ref: string, fields: Readonly<Record<string, string>>): Promise<UploadResult> {
    const sent = await this.upload(entry, ref, fields)
    if (sent.ok) return { ok: true, ref: sent.value }
    this.context.log.warn({ channelId: entry.id, code: sent.error.code, retry: sent.error.retry }, 'a file could not be uploaded to the connector')
    return { ok: false, temporary: sent.error.retry, code: sent.error.code }
  }

  /** Uploads a file of this channel and answers the connector's reference of it. */
  async upload(entry: Entry, ref: string, fields: Readonly<Record<string, string>> = {}): Promise<Result<string, TransferFailure>> {
    const known = this.files.store.find(ref)
    if (known === undefined || known.channelId !== entry.id || known.route !== this.context.settings.name) return NOT_AVAILABLE
    const copied = isRemote(known) ? await this.remote(known) : null
    const file = copied === null ? known : copied.ok ? copied.value : null
    if (file === null) return NOT_AVAILABLE
    const abort = new AbortController()
    const cancel = this.context.clock.timer(this.context.settings.toolTimeoutMs, () => abort.abort())
    try {
      const body = this.files.store.bytes(ref)
      const sent = await this.files.transfers.upload(this.#path(), entry.legacyId, { body, byteSize: file.byteSize, filename: file.filename, mimeType: file.mimeType }, fields, abort.signal)
      return !sent.ok && sent.error.code === BYTES_GONE ? NOT_AVAILABLE : sent
    } catch (error) {
      this.context.log.warn({ err: error, channelId: entry.id }, 'a file could not be read for its upload')
      // Whatever else is wrong with the disk may be over when it is tried again.
      const gone = error instanceof Error && 'code' in error && error.code === BYTES_GONE
      return gone ? NOT_AVAILABLE : err({ code: 'file_unreadable', retry: true })
    } finally {
      cancel()
    }
  }

  /** 1.0 connectors name no protocol version, and call files media. */
  #path(): Parameters<LegacyFiles['upload']>[0] {
    return typeof this.context.facts.legacyCard?.['protocol_version'] === 'string' ? '/files/uploads' : '/media/uploads'
  }
}
