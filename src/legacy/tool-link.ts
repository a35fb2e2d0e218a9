/** A link for `tool.invoke` alone: a slow call on it delays nothing else (docs/legacy.md "Data plane"). */
import type { WireError } from '../protocol/errors.js'
import type { Packet } from '../protocol/packet.js'
import type { LinkEnd } from './link-end.js'
import { Link, type HelloIdentity, type LinkOptions } from './link.js'
import type { Answer } from './port.js'
import { invokePayload, type QueuedCall } from './queued-call.js'

/** `late`: its call timed out and may still run; it takes no other before the answer came. */
export type ToolLinkState = 'dialling' | 'free' | 'busy' | 'late' | 'ending'

export interface ToolLinkEvents {
  readonly onUp: (link: ToolLink) => void
  /** The call on this link ended; the link's state says whether it can take another. */
  readonly onAnswer: (link: ToolLink, queued: QueuedCall, answer: Answer) => void
  /** The late answer of a call came: the link is free again. */
  readonly onLate: (link: ToolLink, queued: QueuedCall, packet: Packet) => void
  readonly onPacket: (packet: Packet) => void
  readonly onUndecodable: (error: WireError, bytes: number) => void
  readonly onEnd: (link: ToolLink, end: LinkEnd, wasUp: boolean) => void
}

export class ToolLink {
  #state: ToolLinkState = 'dialling'
  #running: QueuedCall | null = null
  #upSince: number | null = null
  readonly #link: Link

  constructor(options: LinkOptions, identity: HelloIdentity, private readonly events: ToolLinkEvents) {
    this.#link = new Link(options, identity, {
      onUp: () => {
        if (this.#state === 'dialling') this.#state = 'free'
        this.#upSince = options.clock.monotonic()
        events.onUp(this)
      },
      onPacket: (packet) => this.#received(packet),
      onUndecodable: events.onUndecodable,
      onEnd: (end, wasUp) => {
        this.#state = 'ending'
        events.onEnd(this, end, wasUp)
      },
    })
  }

  get state(): ToolLinkState {
    return this.#state
  }

  /** Monotonic ms of its hello; null before that. */
  get upSince(): number | null {
    return this.#upSince
  }

  /** Only on a free link. */
  run(queued: QueuedCall): void {
    this.#state = 'busy'
    this.#running = queued
    this.#link.request('tool.invoke', queued.call.channelId, invokePayload(queued.call), {
      timeoutMs: queued.call.timeoutMs,
      done: (answer) => this.#answered(queued, answer),
      onLate: (packet) => {
        if (this.#state === 'late') this.#state = 'free'
        this.events.onLate(this, queued, packet)
      },
    })
  }

  async close(reason: string): Promise<void> {
    this.#state = 'ending'
    await this.#link.close(reason)
  }

  #answered(queued: QueuedCall, answer: Answer): void {
    this.#running = null
    if (this.#state === 'busy') this.#state = answer.ok ? 'free' : answer.error.kind === 'timeout' ? 'late' : 'ending'
    this.events.onAnswer(this, queued, answer)
  }

  #received(packet: Packet): void {
    if (packet.type === 'tool.progress.push') this.#running?.onProgress?.(packet.payload)
    // Whatever else comes here is taken as if it had come on the main link: a push is never lost for its socket.
    else this.events.onPacket(packet)
  }
}
