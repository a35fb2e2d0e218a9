/**
 * Files that people sent: copied from the connector at receipt, or remembered to be fetched when xAgent asks (DESIGN §3 Files).
 * A message waits for its files at most `files.fetch_timeout`; one that cannot be had is left out, and said so.
 */
import { inboundBodyKey, type FileItem, type MessageBody } from '../core/record.js'
import { isRemote, type RemoteFile, type StoredFile } from '../files/stored-file.js'
import { StoreError, err, wireError, type Result } from '../protocol/errors.js'
import type { ChannelId } from '../protocol/ids.js'
import type { Entry } from './channel-table.js'
import type { RouteContext, RouteFiles } from './context.js'

/** Downloads of one route at the same time. */
const MAX_DOWNLOADS = 16
const MAX_OF_A_CHANNEL = 4
const FIRST_RETRY_MS = 500
const MAX_RETRY_MS = 5_000

interface Job {
  readonly entry: Entry
  readonly seq: number
  readonly until: number
  items: FileItem[]
  /** What the connector said of the files last. */
  fresh: readonly FileItem[]
  /** What became of the files is on its way into the store. */
  settled: boolean
}

export class FileFetcher {
  readonly #jobs = new Map<number, Job>()
  readonly #remotes = new Map<string, Promise<Result<StoredFile>>>()
  readonly #stop = new AbortController()
  readonly #line: { readonly channel: ChannelId; readonly go: () => void }[] = []
  readonly #running = new Map<ChannelId, number>()

  constructor(
    private readonly context: RouteContext,
    private readonly files: RouteFiles,
    /** Every file of the message is there or lost; `lost` names why, one entry for each lost one. */
    private readonly onSettled: (entry: Entry, seq: number, lost: readonly string[]) => void,
  ) {}

  /** A message was taken over, or loaded, with files: what is still to be had is fetched, and what is not in this store remembered. */
  fetch(entry: Entry, seq: number): void {
    if (this.#jobs.has(seq)) return
    const job: Job = { entry, seq, until: this.context.now() + this.files.fetchTimeoutMs, items: [], fresh: [], settled: false }
    this.#jobs.set(seq, job)
    void this.#untilSettled(job).finally(() => this.#jobs.delete(seq))
  }

  /** A store that cannot be asked now is asked again: a message must not wait for ever because of it. */
  async #untilSettled(job: Job): Promise<void> {
    while (!this.#stop.signal.aborted && !this.#gone(job)) {
      try {
        return await this.#settle(job)
      } catch (error) {
        this.context.log.error({ err: error, seq: job.seq }, 'the files of a message could not be settled')
        if (error instanceof StoreError && error.code === 'record_unreadable') return this.#bodyLost(job)
        await this.#passed(MAX_RETRY_MS)
      }
    }
  }

  /** The connector pushed the message again: what is not copied yet comes from the new references, also after a restart. */
  refresh(entry: Entry, seq: number, fresh: readonly FileItem[]): void {
    const job = this.#jobs.get(seq)
    if (job !== undefined) job.fresh = fresh
    void this.#pointAnew(entry, seq, fresh).catch((error: unknown) => {
      this.context.log.warn({ err: error, channelId: entry.id, seq }, 'new references of files could not be stored')
    })
  }

  async #pointAnew(entry: Entry, seq: number, fresh: readonly FileItem[]): Promise<void> {
    const { commits } = this.context
    const job = this.#jobs.get(seq)
    const read = commits.read('body', inboundBodyKey(seq))
    const body = (read instanceof Promise ? await read : read) as MessageBody | undefined
    if (body === undefined || !entry.channel.bySeq.has(seq)) return
    // Read before its files were settled: what was found of them must not be overwritten.
    if (job?.settled === true && read instanceof Promise && this.#jobs.has(seq)) return this.#pointAnew(entry, seq, fresh)
    const files = body.files.map((item, index) => (item.state === 'lost' ? item : { ...item, sourceUrl: fresh[index]?.sourceUrl ?? item.sourceUrl }))
    commits.push([{ op: 'put', kind: 'body', key: inboundBodyKey(seq), value: { text: body.text, files } }], null)
    for (const item of files) await this.#remind(entry, item)
  }

  /** A remembered file is where its item says now, unless it is being copied. */
  async #remind(entry: Entry, item: FileItem): Promise<void> {
    const known = item.ref === null ? undefined : this.files.store.find(item.ref)
    if (known === undefined || !isRemote(known) || this.#remotes.has(known.ref)) return
    await this.files.store.remember(this.#factsOf(entry, item), item.sourceUrl, { ref: known.ref, expiresAt: known.expiresAt })
  }

  /** Copied by an instance with a folder of its own: whoever asks here gets it from the connector. */
  async #adopt(entry: Entry, item: FileItem): Promise<void> {
    const { ref, expiresAt } = item
    if (item.state !== 'ready' || ref === null || expiresAt === null || expiresAt <= this.context.now() || this.files.store.find(ref) !== undefined) return
    await this.files.store.remember(this.#factsOf(entry, item), item.sourceUrl, { ref, expiresAt })
    this.context.log.info({ channelId: entry.id }, 'a file of a waiting message is not in this store: it is fetched from the connector when it is asked for')
  }

  /** Copies a remembered file now that xAgent asks for it; whoever asks meanwhile waits for the same copy. */
  remote(file: RemoteFile): Promise<Result<StoredFile>> {
    const running = this.#remotes.get(file.ref)
    if (running !== undefined) return running
    const copy = this.#copyRemote(file).finally(() => this.#remotes.delete(file.ref))
    this.#remotes.set(file.ref, copy)
    return copy
  }

  async #copyRemote(file: RemoteFile): Promise<Result<StoredFile>> {
    if (typeof file.remote !== 'string') return err(wireError('file_not_available'))
    await this.#place(file.channelId)
    const late = new AbortController()
    const cancel = this.context.clock.timer(this.files.fetchTimeoutMs, () => late.abort())
    const signal = AbortSignal.any([this.#stop.signal, late.signal])
    try {
      const download = await this.files.transfers.download(file.remote, signal)
      if (download.ok) {
        const facts = { route: file.route, channelId: file.channelId, kind: file.kind, filename: file.filename, claimedMime: file.mimeType, claimedType: file.type }
        return await this.files.store.receive(download.value.body, facts, { signal, ref: file.ref })
      }
      this.context.metrics.deviations(['file_lost'])
      this.context.log.warn({ channelId: file.channelId, code: download.error.code }, 'a file could not be had from the connector')
      return err(wireError('file_not_available'))
    } finally {
      cancel()
      this.#leave(file.channelId)
    }
  }

  /** Nothing is fetched any more; what was not settled is fetched by the next run. */
  stop(): void {
    this.#stop.abort()
    for (const { go } of this.#line.splice(0)) go()
  }

  async #settle(job: Job): Promise<void> {
    const { commits } = this.context
    const body = (await commits.read('body', inboundBodyKey(job.seq))) as MessageBody | undefined
    if (body === undefined) return this.#bodyLost(job)
    for (const item of body.files) await this.#adopt(job.entry, item)
    if (body.files.every(({ state }) => state !== 'preparing')) return
    job.items = [...body.files]
    await Promise.all(job.items.map((_, index) => this.#one(job, index)))
    if (this.#stop.signal.aborted || this.#gone(job)) return
    job.settled = true
    const settled: MessageBody = { text: body.text, files: job.items }
    const lost = job.items.flatMap(({ lostBy }) => lostBy ?? [])
    commits.push([{ op: 'put', kind: 'body', key: inboundBodyKey(job.seq), value: settled }], () => this.onSettled(job.entry, job.seq, lost))
  }

  #bodyLost({ entry, seq }: Job): void {
    this.onSettled(entry, seq, Array<string>(entry.channel.bySeq.get(seq)?.files ?? 0).fill('body_lost'))
  }

  async #one(job: Job, index: number): Promise<void> {
    for (let attempt = 1; job.items[index]?.state === 'preparing'; attempt += 1) {
      const item = { ...job.items[index], sourceUrl: job.fresh[index]?.sourceUrl ?? job.items[index].sourceUrl }
      const result = await this.#got(job, item)
      if (this.#stop.signal.aborted || this.#gone(job)) return
      if ('item' in result) return void job.items.splice(index, 1, result.item)
      const wait = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (attempt - 1))
      if (!result.retry || this.context.now() + wait >= job.until) {
        this.context.metrics.deviations(['file_lost'])
        this.context.log.warn({ channelId: job.entry.id, seq: job.seq, file: index + 1, code: result.code }, 'a file could not be had from the connector')
        return void job.items.splice(index, 1, { ...item, state: 'lost', lostBy: result.code })
      }
      await this.#passed(wait)
    }
  }

  /** A file store that cannot be written now is one more reason to try again. */
  async #got(job: Job, item: FileItem): Promise<{ item: FileItem } | { code: string; retry: boolean }> {
    try {
      return this.files.inbound === 'lazy' ? await this.#remembered(job, item) : await this.#copied(job, item)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      return { code: error.code, retry: true }
    }
  }

  async #remembered(job: Job, item: FileItem): Promise<{ item: FileItem } | { code: string; retry: boolean }> {
    const remembered = await this.files.store.remember(this.#factsOf(job.entry, item), item.sourceUrl)
    return { item: { ...item, state: 'ready', ref: remembered.ref, filename: remembered.filename, expiresAt: remembered.expiresAt } }
  }

  async #copied(job: Job, item: FileItem): Promise<{ item: FileItem } | { code: string; retry: boolean }> {
    const { id } = job.entry
    await this.#place(id)
    const late = new AbortController()
    const cancel = this.context.clock.timer(Math.max(0, job.until - this.context.now()), () => late.abort())
    const abort = AbortSignal.any([this.#stop.signal, late.signal])
    try {
      const download = await this.files.transfers.download(item.sourceUrl, abort)
      if (!download.ok) return download.error
      const stored = await this.files.store.receive(download.value.body, this.#factsOf(job.entry, item), { signal: abort })
      if (!stored.ok) return { code: stored.error.code, retry: stored.error.code === 'upload_aborted' || stored.error.code === 'file_unreadable' }
      const { ref, type, filename, mimeType, byteSize, expiresAt } = stored.value
      return { item: { ...item, state: 'ready', ref, type, filename, mimeType, byteSize, expiresAt } }
    } finally {
      cancel()
      this.#leave(id)
    }
  }

  #factsOf(entry: Entry, item: FileItem) {
    return { route: this.context.settings.name, channelId: entry.id, kind: 'inbound' as const, filename: item.filename, claimedMime: item.mimeType, claimedType: item.type }
  }

  /** Whether the message has ended meanwhile. */
  #gone({ entry, seq }: Job): boolean {
    return !entry.channel.bySeq.has(seq)
  }

  /** A place for one download: some for every channel, so that slow files of one do not hold up the others. */
  async #place(channel: ChannelId): Promise<void> {
    if (this.#mayRun(channel)) return this.#count(channel, 1)
    await new Promise<void>((go) => this.#line.push({ channel, go }))
  }

  #leave(channel: ChannelId): void {
    this.#count(channel, -1)
    const at = this.#line.findIndex((waiting) => this.#mayRun(waiting.channel))
    const [next] = at === -1 ? [] : this.#line.splice(at, 1)
    if (next === undefined) return
    this.#count(next.channel, 1)
    next.go()
  }

  #mayRun(channel: ChannelId): boolean {
    const all = [...this.#running.values()].reduce((sum, one) => sum + one, 0)
    return all < MAX_DOWNLOADS && (this.#running.get(channel) ?? 0) < MAX_OF_A_CHANNEL
  }

  #count(channel: ChannelId, by: 1 | -1): void {
    const running = (this.#running.get(channel) ?? 0) + by
    if (running === 0) this.#running.delete(channel)
    else this.#running.set(channel, running)
  }

  #passed(ms: number): Promise<void> {
    return new Promise((resolve) => void this.context.clock.timer(ms, resolve))
  }
}
