/**
 * Whether tool calls go on the main link (DESIGN §3): by configuration, because the connector takes calls only from the link
 * that opened the channel, because it admits one link at a time, or because it hangs up the main link for a second one.
 */
import type { EndCause } from './link-end.js'

const DROPS_IN_A_ROW = 2
const REFUSALS_IN_A_ROW = 3

export class MainLinkMode {
  #untilReconnect = false
  #dropsAfterHello = 0
  #refusals = 0
  #lastToolHelloAt: number | null = null

  /** A main link that is lost within `rightAfterMs` of a tool link's hello is taken to be lost for it. */
  constructor(private readonly always: boolean, private readonly rightAfterMs: number) {}

  get on(): boolean {
    return this.always || this.#untilReconnect || this.#dropsAfterHello >= DROPS_IN_A_ROW
  }

  /** After a reconnect it may be another version of the connector: tool links are tried again, unless they cost main links. */
  mainUp(): void {
    this.#untilReconnect = false
    this.#refusals = 0
  }

  mainDown(now: number): void {
    if (this.on) return
    const rightAfter = this.#lastToolHelloAt !== null && now - this.#lastToolHelloAt < this.rightAfterMs
    this.#dropsAfterHello = rightAfter ? this.#dropsAfterHello + 1 : 0
    this.#lastToolHelloAt = null
  }

  toolHello(now: number): void {
    this.#lastToolHelloAt = now
    this.#refusals = 0
  }

  /** Answered but not admitted, again and again, while the main link is up: this connector takes no second link. */
  toolDialFailed(cause: EndCause): void {
    if (cause !== 'refused' && cause !== 'denied') return
    this.#refusals += 1
    if (this.#refusals >= REFUSALS_IN_A_ROW) this.#untilReconnect = true
  }

  /** `connector_channel_not_owned`: certainly not executed, and the next call would end the same. */
  notOwned(): void {
    this.#untilReconnect = true
  }
}
