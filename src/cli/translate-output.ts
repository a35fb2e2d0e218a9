/** Lines to a stream that may read slowly, or be closed by its reader. */
import { once } from 'node:events'
import type { Writable } from 'node:stream'

export class LineWriter {
  #closed = false
  #failure: Error | null = null

  constructor(private readonly stream: Writable) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      this.#closed = true
      // The reader has what it wanted.
      if (error.code !== 'EPIPE') this.#failure = error
    })
  }

  /** Nobody reads any more. */
  get closed(): boolean {
    return this.#closed
  }

  /** Throws what ended the stream, unless its reader just went away. */
  check(): void {
    if (this.#failure !== null) throw this.#failure
  }

  /** Resolves when more may be written; writes nothing once the stream has ended. */
  async write(line: string): Promise<void> {
    if (this.#closed || this.stream.write(`${line}\n`)) return
    // `once` also rejects at an error, which the listener above has dealt with.
    await Promise.race([once(this.stream, 'drain'), once(this.stream, 'close')]).catch(() => undefined)
  }
}
