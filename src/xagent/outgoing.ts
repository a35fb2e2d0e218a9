/** One answer whose body is streamed: what the client does not take yet stays with its source. */
import type { HttpResponse } from 'uWebSockets.js'
import { writeAnswer, writeHead, type HttpAnswer } from './http-answer.js'

interface Waiting {
  readonly chunk: Uint8Array
  /** Where the chunk begins in the body. */
  readonly from: number
  readonly resolve: () => void
}

export class Outgoing {
  #over = false
  #started = false
  #waiting: Waiting | null = null

  /** To be made within the request's handler. */
  constructor(
    private readonly response: HttpResponse,
    private readonly isHead: boolean,
  ) {
    response.onAborted(() => {
      this.#over = true
      this.#waiting?.resolve()
    })
  }

  /** Nothing was written yet. */
  get fresh(): boolean {
    return !this.#started && !this.#over
  }

  answer(answer: HttpAnswer): void {
    if (!this.fresh) return
    this.#over = true
    this.response.cork(() => writeAnswer(this.response, answer, this.isHead))
  }

  /** Headers alone, as if a body of this size followed. The connection is closed: the server would take the body for still owed. */
  headOnly(head: Omit<HttpAnswer, 'body'>, size: number): void {
    if (!this.fresh) return
    this.#over = true
    this.response.cork(() => {
      writeHead(this.response, head)
      this.response.endWithoutBody(size, true)
    })
  }

  /** Streams exactly `size` bytes. Rejects with what the source says; while `fresh`, another answer can still be given. */
  async stream(head: Omit<HttpAnswer, 'body'>, size: number, source: AsyncIterable<Uint8Array>): Promise<void> {
    if (this.#over) return
    this.response.onWritable((offset) => this.#writable(offset, size))
    try {
      for await (const chunk of source) {
        if (!this.#over) await this.#write(head, chunk, size)
        if (this.#over) return
      }
    } finally {
      if (this.#started) this.#cut()
    }
  }

  /** Resolves when the chunk is taken, or the client is gone. */
  #write(head: Omit<HttpAnswer, 'body'>, chunk: Uint8Array, size: number): Promise<void> {
    return new Promise((resolve) => {
      this.response.cork(() => {
        if (!this.#started) writeHead(this.response, head)
        this.#started = true
        const from = this.response.getWriteOffset()
        if (this.#tryEnd(chunk, size)) resolve()
        else this.#waiting = { chunk, from, resolve }
      })
    })
  }

  #writable(offset: number, size: number): boolean {
    const waiting = this.#waiting
    if (waiting === null) return true
    const sent = this.#tryEnd(waiting.chunk.subarray(offset - waiting.from), size)
    if (sent) {
      this.#waiting = null
      waiting.resolve()
    }
    return sent
  }

  #tryEnd(chunk: Uint8Array, size: number): boolean {
    const [ok, done] = this.response.tryEnd(chunk, size)
    if (done) this.#over = true
    return ok || done
  }

  /** A body that did not come to its end: the client must see that. */
  #cut(): void {
    if (this.#over) return
    this.#over = true
    this.response.close()
  }
}
