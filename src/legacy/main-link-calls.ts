/**
 * Tool calls on the main link, for connectors that want them there: one at a time, because a 1.0 connector would only queue
 * the second one in its socket, where it is no longer certainly unsent.
 */
import type { Packet } from '../protocol/packet.js'
import type { Answer, MainLink } from './port.js'
import { invokePayload, type QueuedCall } from './queued-call.js'
import type { LegacyTiming } from './timing.js'

export interface MainLinkCallEvents {
  readonly onAnswer: (queued: QueuedCall, answer: Answer) => void
  /** The main link can take a call again after one that timed out. */
  readonly onFree: () => void
}

export class MainLinkCalls {
  #running: QueuedCall | null = null
  /** A call that timed out may still run in the connector's read loop. */
  #held: QueuedCall | null = null

  constructor(
    private readonly request: MainLink['request'],
    private readonly timing: LegacyTiming,
    private readonly events: MainLinkCallEvents,
  ) {}

  get free(): boolean {
    return this.#running === null && this.#held === null
  }

  get running(): number {
    return this.#running === null ? 0 : 1
  }

  /** Only when free. */
  run(queued: QueuedCall): void {
    this.#running = queued
    this.request('tool.invoke', queued.call.channelId, invokePayload(queued.call), queued.call.timeoutMs, (answer) => {
      this.#running = null
      if (!answer.ok && answer.error.kind === 'timeout') this.#hold(queued)
      this.events.onAnswer(queued, answer)
    }, (packet) => {
      queued.onLate(packet)
      this.#release(queued)
    })
  }

  /** Relays progress of the running call; false = the packet is none of that. */
  progress(packet: Packet): boolean {
    if (packet.type !== 'tool.progress.push' || this.#running === null) return false
    this.#running.onProgress?.(packet.payload)
    return true
  }

  /** The main link is gone, and with it what its read loop was busy with. */
  mainDown(): void {
    this.#held = null
  }

  /** The read loop that runs the call answers pings in order: an answered ping shows that it is free again. */
  #hold(queued: QueuedCall): void {
    this.#held = queued
    this.request('ping', '', {}, this.timing.lateCallMs, () => this.#release(queued))
  }

  #release(queued: QueuedCall): void {
    if (this.#held !== queued) return
    this.#held = null
    this.events.onFree()
  }
}
