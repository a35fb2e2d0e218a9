/** One request whose body is read as it comes. Its answer can be given at any time, once; nothing here throws on a closed one. */
import type { HttpResponse } from 'uWebSockets.js'
import { refusal, writeAnswer, type HttpAnswer } from './http-answer.js'

/** Who takes the body. `data` gets a copy. */
export interface BodySink {
  data(chunk: Buffer): void
  end(): void
  /** The client is gone; no answer is possible any more. */
  aborted(): void
}

/** So much of a body that was refused is still read, and thrown away, so that the connection can be used again. */
const MAX_DISCARDED_BYTES = 1024 * 1024

export class BodyExchange {
  #state: 'reading' | 'complete' | 'over' = 'reading'
  #paused = false
  #received = 0

  /**
   * To be made within the request's handler. `length` is what the request says of its body; NaN = nothing. `failed` is told
   * about bugs; they get a 500.
   */
  constructor(
    private readonly response: HttpResponse,
    private readonly length: number,
    private readonly failed: (error: unknown) => void,
  ) {}

  read(sink: BodySink): void {
    this.response.onAborted(() => {
      const wasOpen = this.#state !== 'over'
      this.#state = 'over'
      if (wasOpen) this.#guarded(() => sink.aborted())
    })
    this.response.onData((chunk, isLast) => this.#guarded(() => this.#take(sink, chunk, isLast)))
  }

  /** Stops reading, so that the client feels it. */
  pause(): void {
    if (this.#state !== 'reading' || this.#paused) return
    this.#paused = true
    this.response.pause()
  }

  resume(): void {
    if (!this.#paused || this.#state === 'over') return
    this.#paused = false
    this.response.resume()
  }

  /**
   * Where much of the body is still to come, nothing more of it is read, and the server closes the connection when that was
   * idle for a while. At once would be too early: it would take the answer away from a client that is still writing.
   */
  answer(answer: HttpAnswer): void {
    if (this.#state === 'over') return
    const refusesBody = this.#state === 'reading' && !(this.length - this.#received <= MAX_DISCARDED_BYTES)
    if (refusesBody) this.pause()
    else this.resume()
    this.#state = 'over'
    const headers = refusesBody ? { ...answer.headers, connection: 'close' } : answer.headers
    this.response.cork(() => writeAnswer(this.response, { ...answer, headers }, false))
  }

  #take(sink: BodySink, chunk: ArrayBuffer, isLast: boolean): void {
    if (this.#state !== 'reading') return
    this.#received += chunk.byteLength
    if (isLast) this.#state = 'complete'
    // Copied: the memory is the server's own again when this call returns.
    if (chunk.byteLength > 0) sink.data(Buffer.from(chunk.slice(0)))
    if (isLast) sink.end()
  }

  #guarded(call: () => void): void {
    try {
      call()
    } catch (error) {
      this.failed(error)
      this.answer(refusal(500, 'internal_error'))
    }
  }
}
