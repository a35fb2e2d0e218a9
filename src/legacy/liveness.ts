/**
 * Finds links that are dead although nobody closed them. 1.0 connectors run a tool call in their read loop, so a running
 * call delays the answer to a ping for as long as it takes: silence is judged only where nothing excuses it (DESIGN §3).
 */
import type { Cancel, Clock } from '../ops/clock.js'
import type { LegacyTiming } from './timing.js'

export interface JudgedLink {
  /** Sends a `ping` packet. */
  readonly ping: () => void
  /** Whether a silence of this length may count against the link now. */
  readonly judged: (silentMs: number) => boolean
  readonly dead: () => void
}

export class Liveness {
  #receivedAt: number
  #pingedAt: number | null = null
  #cancel: Cancel = () => {}

  constructor(private readonly timing: LegacyTiming, private readonly clock: Clock, private readonly link: JudgedLink) {
    this.#receivedAt = clock.monotonic()
  }

  start(): void {
    this.received()
    this.#lookIn(this.timing.pingAfterMs)
  }

  /** Any frame proves life. Also to be called when reading resumes: nothing could be read before. */
  received(): void {
    this.#receivedAt = this.clock.monotonic()
    this.#pingedAt = null
  }

  stop(): void {
    this.#cancel()
  }

  #look(): void {
    const { pingAfterMs, pingAnswerMs } = this.timing
    const now = this.clock.monotonic()
    const silentMs = now - this.#receivedAt
    if (!this.link.judged(silentMs)) return this.#lookIn(pingAnswerMs)
    if (this.#pingedAt !== null) {
      const leftMs = this.#pingedAt + pingAnswerMs - now
      return leftMs > 0 ? this.#lookIn(leftMs) : this.link.dead()
    }
    if (silentMs < pingAfterMs) return this.#lookIn(pingAfterMs - silentMs)
    this.#pingedAt = now
    this.link.ping()
    this.#lookIn(pingAnswerMs)
  }

  #lookIn(ms: number): void {
    this.#cancel = this.clock.timer(ms, () => this.#look())
  }
}
