/**
 * The tool links of a route and the line in front of them (DESIGN §3 "Links of a route"). One link is open whenever the main
 * link is, more while calls wait, each with one call in flight; what waits is certainly not sent.
 */
import type { Cancel } from '../ops/clock.js'
import type { WireError } from '../protocol/errors.js'
import type { JsonObject, Packet } from '../protocol/packet.js'
import { CARD_UNKNOWN, type LinkEnd } from './link-end.js'
import type { HelloIdentity, LinkOptions } from './link.js'
import { MainLinkCalls } from './main-link-calls.js'
import { MainLinkMode } from './main-link-mode.js'
import type { Answer, MainLink, ToolCall, ToolLinks } from './port.js'
import { neverSent, type QueuedCall } from './queued-call.js'
import { outageFrom, retryAfter } from './reconnect.js'
import { ToolLink, type ToolLinkState } from './tool-link.js'
import { WaitingLine } from './waiting-line.js'

export interface ToolLinksOptions {
  readonly link: LinkOptions
  readonly hello: () => HelloIdentity | null
  readonly random: () => number
  /** Links at most; 0 = every call goes on the main link. */
  readonly max: number
  /** How long a call waits in the line before it ends `not_connected`. */
  readonly waitMs: number
  readonly main: MainLink['request']
  readonly onPacket: (packet: Packet) => void
  readonly onUndecodable: (error: WireError, bytes: number) => void
}

export class ToolLinkPool implements ToolLinks {
  readonly #links = new Set<ToolLink>()
  readonly #idle = new Map<ToolLink, Cancel>()
  /** Links whose hello holds no longer: they take no further call. */
  readonly #outdated = new WeakSet<ToolLink>()
  readonly #line: WaitingLine<QueuedCall>
  readonly #mainCalls: MainLinkCalls
  readonly #mode: MainLinkMode
  #mainUp = false
  #closed = false
  #outage = outageFrom(0)
  #redial: Cancel | null = null

  constructor(private readonly options: ToolLinksOptions) {
    const { clock, timing } = options.link
    this.#line = new WaitingLine(clock, options.waitMs, (queued) => queued.done(neverSent()))
    this.#mainCalls = new MainLinkCalls(options.main, timing, {
      onAnswer: (queued, answer) => this.#answered(queued, answer, 'main'),
      onFree: () => this.#advance(),
    })
    this.#mode = new MainLinkMode(options.max === 0, timing.steadyMs)
  }

  get waiting(): number {
    return this.#line.length
  }

  get running(): number {
    return this.#in('busy').length + this.#mainCalls.running
  }

  invoke(
    call: ToolCall,
    done: (answer: Answer) => void,
    onLate: (packet: Packet) => void,
    onProgress?: (payload: JsonObject) => void,
  ): void {
    if (this.#closed) return queueMicrotask(() => done(neverSent()))
    this.#line.push({ call, done, onLate, onProgress })
    this.#advance()
  }

  async close(reason: string): Promise<void> {
    this.#closed = true
    this.#stopRedial()
    for (const queued of this.#line.clear()) queued.done(neverSent())
    await Promise.all([...this.#links].map((link) => this.#close(link, reason)))
  }

  /** The connector serves another profile now: no link goes on under the hello that it has said; what runs is answered first. */
  rehello(reason: string): void {
    this.#mode.toolLinkEnded(this.#now())
    for (const link of this.#links) {
      if (link.state === 'busy' || link.state === 'late') this.#outdated.add(link)
      else void this.#close(link, reason)
    }
  }

  /** The main link said hello. */
  mainUp(): void {
    this.#mainUp = true
    this.#mode.mainUp()
    this.#stopRedial()
    this.#outage = outageFrom(this.#now())
    this.#advance()
  }

  mainDown(): void {
    this.#mainUp = false
    this.#mainCalls.mainDown()
    this.#mode.mainDown(this.#now())
    this.#stopRedial()
  }

  /** Takes progress of a call that runs on the main link; false = the packet is not for the pool. */
  mainPacket(packet: Packet): boolean {
    return this.#mainCalls.progress(packet)
  }

  /** Gives waiting calls to whoever is free, and sees to it that there are links for the rest. */
  #advance(): void {
    if (!this.#mainUp || this.#closed) return
    if (this.#mode.on) return this.#advanceOnMain()
    for (const link of this.#in('free')) {
      const queued = this.#line.shift()
      if (queued === null) break
      this.#notIdle(link)
      link.run(queued)
    }
    this.#dialMissing()
  }

  #advanceOnMain(): void {
    for (const link of [...this.#in('free'), ...this.#in('dialling')]) void this.#close(link, 'tools go on the main link')
    if (!this.#mainCalls.free) return
    const queued = this.#line.shift()
    if (queued !== null) this.#mainCalls.run(queued)
  }

  #dialMissing(): void {
    if (this.#redial !== null) return
    const wanted = Math.min(this.options.max, Math.max(1, this.#in('busy').length + this.#line.length))
    while (this.#active() < wanted) {
      const identity = this.options.hello()
      if (identity === null) return this.#redialLater(CARD_UNKNOWN)
      this.#mode.toolDialled(this.#now())
      this.#links.add(this.#dial(identity))
    }
  }

  #dial(identity: HelloIdentity): ToolLink {
    const { onPacket, onUndecodable } = this.options
    return new ToolLink(this.options.link, identity, {
      onUp: (link) => {
        this.#mode.toolHello(this.#now())
        this.#freed(link)
      },
      onAnswer: (link, queued, answer) => {
        this.#answered(queued, answer, 'tool')
        if (link.state === 'late') this.#boundLate()
        this.#freed(link)
      },
      onLate: (link, queued, packet) => {
        queued.onLate(packet)
        if (this.#active() > this.options.max) void this.#close(link, 'enough tool links')
        this.#freed(link)
      },
      onPacket,
      onUndecodable,
      onEnd: (link, end, wasUp) => this.#ended(link, end, wasUp),
    })
  }

  #answered(queued: QueuedCall, answer: Answer, on: 'tool' | 'main'): void {
    const refused = answer.ok && answer.value.error?.code === 'connector_channel_not_owned'
    const unsent = !answer.ok && answer.error.kind === 'not_connected'
    if (on === 'tool' && refused) this.#mode.notOwned()
    if (!this.#closed && ((on === 'tool' && refused) || unsent)) this.#line.pushFront(queued)
    else queued.done(answer)
    if (on === 'main' && !unsent) this.#advance()
  }

  /** A link can take a call again, or else another one has to be found. */
  #freed(link: ToolLink): void {
    if (this.#outdated.has(link) && link.state === 'free') void this.#close(link, 'its hello is outdated')
    this.#advance()
    if (link.state !== 'free' || this.#idle.has(link)) return
    this.#idle.set(link, this.options.link.clock.timer(this.options.link.timing.idleToolLinkMs, () => {
      this.#idle.delete(link)
      if (this.#active() > 1) void this.#close(link, 'idle')
    }))
  }

  #ended(link: ToolLink, end: LinkEnd, wasUp: boolean): void {
    this.#links.delete(link)
    this.#notIdle(link)
    if (this.#closed || end.cause === 'closed') return
    const upForMs = link.upSince === null ? 0 : this.#now() - link.upSince
    if (upForMs >= this.options.link.timing.steadyMs) this.#outage = outageFrom(this.#now())
    this.#mode.toolLinkEnded(this.#now())
    if (!wasUp) this.#mode.toolDialFailed(end.cause)
    if (this.#mode.on) this.#advance()
    else if (this.#mainUp) this.#redialLater(end)
  }

  #redialLater(end: LinkEnd): void {
    if (this.#redial !== null) return
    const failed = { now: this.#now(), denied: end.cause === 'denied', random: this.options.random() }
    const { outage, delayMs } = retryAfter(this.#outage, failed, this.options.link.timing)
    this.#outage = outage
    this.#redial = this.options.link.clock.timer(delayMs, () => {
      this.#redial = null
      this.#advance()
    })
  }

  #stopRedial(): void {
    this.#redial?.()
    this.#redial = null
  }

  /** As many links as the pool has may wait for late answers; beyond that the oldest is given up. */
  #boundLate(): void {
    const [oldest, ...others] = this.#in('late')
    if (oldest !== undefined && others.length >= this.options.max) void this.#close(oldest, 'no answer to a tool call')
  }

  async #close(link: ToolLink, reason: string): Promise<void> {
    this.#notIdle(link)
    await link.close(reason)
  }

  #notIdle(link: ToolLink): void {
    this.#idle.get(link)?.()
    this.#idle.delete(link)
  }

  #active(): number {
    return this.#in('dialling').length + this.#in('free').length + this.#in('busy').length
  }

  /** In the order in which they were dialled. */
  #in(state: ToolLinkState): ToolLink[] {
    return [...this.#links].filter((link) => link.state === state)
  }

  #now(): number {
    return this.options.link.clock.monotonic()
  }
}
