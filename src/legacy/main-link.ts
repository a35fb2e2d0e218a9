/** The main link of a route: one link that is dialled again whenever it is gone (DESIGN §3 "Always listening"). */
import type { Cancel } from '../ops/clock.js'
import type { LegacyChannelId } from '../protocol/ids.js'
import type { JsonObject, Packet } from '../protocol/packet.js'
import { CARD_UNKNOWN, type LinkEnd } from './link-end.js'
import { Link, type HelloIdentity, type LinkOptions } from './link.js'
import type { Answer, MainLink, MainLinkEvents } from './port.js'
import { outageFrom, retryAfter, type Outage } from './reconnect.js'

export interface MainLinkOptions {
  readonly link: LinkOptions
  /** Asked at every dial; null = not known yet, tried again like a refused dial. */
  readonly hello: () => HelloIdentity | null
  /** In [0, 1), for the jitter. */
  readonly random: () => number
}

type State =
  | { readonly phase: 'idle' }
  | { readonly phase: 'dialling'; readonly link: Link }
  | { readonly phase: 'up'; readonly link: Link; readonly since: number }
  | { readonly phase: 'waiting'; readonly cancel: Cancel; readonly backingOff: boolean }
  | { readonly phase: 'closed' }

export class ReconnectingMainLink implements MainLink {
  #state: State = { phase: 'idle' }
  #outage: Outage = outageFrom(0)
  #paused = false
  /** The link is being ended by us, to be dialled anew. */
  #givenUp = false

  constructor(private readonly options: MainLinkOptions, private readonly events: MainLinkEvents) {}

  get up(): boolean {
    return this.#state.phase === 'up' && this.#state.link.up
  }

  get dialling(): boolean {
    return this.#state.phase === 'dialling' || (this.#state.phase === 'waiting' && !this.#state.backingOff)
  }

  start(): void {
    if (this.#state.phase !== 'idle') return
    this.#outage = outageFrom(this.#now())
    this.#dial()
  }

  request(
    type: string,
    channelId: LegacyChannelId | '',
    payload: JsonObject,
    timeoutMs: number,
    done: (answer: Answer) => void,
    onLate?: (packet: Packet) => void,
  ): void {
    if (this.#state.phase === 'up') this.#state.link.request(type, channelId, payload, { timeoutMs, done, onLate })
    else queueMicrotask(() => done({ ok: false, error: { kind: 'not_connected', sent: false } }))
  }

  send(packet: Packet): boolean {
    return this.#state.phase === 'up' && this.#state.link.send(packet)
  }

  /** Gives up the link that is, and dials a new one at once: this was no failure of the connector's. */
  rehello(reason: string): void {
    const state = this.#state
    if (state.phase === 'waiting') {
      state.cancel()
      this.#dialAnew()
    }
    if (state.phase !== 'dialling' && state.phase !== 'up') return
    this.#givenUp = true
    state.link.terminate({ cause: 'lost', reason })
  }

  pause(): void {
    this.#setPaused(true)
  }

  resume(): void {
    this.#setPaused(false)
  }

  async close(reason: string): Promise<void> {
    const state = this.#state
    this.#state = { phase: 'closed' }
    if (state.phase === 'waiting') state.cancel()
    if (state.phase === 'dialling' || state.phase === 'up') await state.link.close(reason)
  }

  #dial(): void {
    const identity = this.options.hello()
    if (identity === null) return this.#dialFailed(CARD_UNKNOWN)
    const link: Link = new Link(this.options.link, identity, {
      onUp: ({ connectorId, protocolVersion, deviations }) => {
        if (this.#state.phase !== 'closed') this.#state = { phase: 'up', link, since: this.#now() }
        if (this.#paused) link.setPaused(true)
        this.events.onUp({ connectorId, protocolVersion, deviations })
      },
      onPacket: this.events.onPacket,
      onUndecodable: this.events.onUndecodable,
      onEnd: (end, wasUp) => this.#ended(end, wasUp),
    })
    this.#state = { phase: 'dialling', link }
  }

  #ended(end: LinkEnd, wasUp: boolean): void {
    const state = this.#state
    if (this.#givenUp && state.phase !== 'closed') {
      this.#dialAnew()
      if (wasUp) this.events.onDown(end.reason)
      return
    }
    if (!wasUp) {
      if (state.phase !== 'closed') this.#dialFailed(end)
      return
    }
    const steady = state.phase === 'up' && this.#now() - state.since >= this.options.link.timing.steadyMs
    if (steady) {
      this.#dialAnew()
    } else if (state.phase === 'up') {
      this.#retry(end)
    }
    this.events.onDown(end.reason)
  }

  #dialFailed(end: LinkEnd): void {
    this.#retry(end)
    this.events.onDialFailed(end.reason, this.#outage.attempts, end.cause)
  }

  #dialAnew(): void {
    this.#givenUp = false
    this.#outage = outageFrom(this.#now())
    this.#redialIn(0, false)
  }

  #retry(end: LinkEnd): void {
    const failed = { now: this.#now(), denied: end.cause === 'denied', random: this.options.random() }
    const { outage, delayMs, backingOff } = retryAfter(this.#outage, failed, this.options.link.timing)
    this.#outage = outage
    this.#redialIn(delayMs, backingOff)
  }

  #redialIn(delayMs: number, backingOff: boolean): void {
    // By timer even without delay: the end of the old link is told first.
    const cancel = this.options.link.clock.timer(delayMs, () => this.#dial())
    this.#state = { phase: 'waiting', cancel, backingOff }
  }

  #setPaused(paused: boolean): void {
    this.#paused = paused
    if (this.#state.phase === 'up') this.#state.link.setPaused(paused)
  }

  #now(): number {
    return this.options.link.clock.monotonic()
  }
}
