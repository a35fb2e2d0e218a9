/**
 * Whether tool calls go on the main link (DESIGN §3): by configuration, because the connector takes calls only from the link
 * that opened the channel, because it admits one link at a time, or because it hangs up the main link for a second one.
 */
import type { EndCause } from './link-end.js'

const DROPS_IN_A_ROW = 2
const REFUSALS_IN_A_ROW = 3
/** Links that end this close together ended with their process; shorter than the wait before a short-lived link is redialled. */
const TOGETHER_MS = 50

export class MainLinkMode {
  #untilReconnect = false
  #dropsAfterHello = 0
  #refusals = 0
  #toolLinkAt: number | null = null
  #droppedAt: number | null = null

  /** A main link that is lost within `rightAfterMs` of a tool link's dial or hello is taken to be lost for it. */
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
    const rightAfter = this.#toolLinkAt !== null && now - this.#toolLinkAt < this.rightAfterMs
    this.#dropsAfterHello = rightAfter ? this.#dropsAfterHello + 1 : 0
    this.#droppedAt = rightAfter ? now : null
    this.#toolLinkAt = null
  }

  /** A tool link that is gone, too, was not what the main link had to make room for. */
  toolLinkEnded(now: number): void {
    this.#toolLinkAt = null
    if (this.#droppedAt !== null && now - this.#droppedAt < TOGETHER_MS) this.#dropsAfterHello -= 1
    this.#droppedAt = null
  }

  /** Counted from the dial on: the loss of the main link may be seen before the tool link's hello is answered. */
  toolDialled(now: number): void {
    this.#toolLinkAt = now
  }

  toolHello(now: number): void {
    this.#toolLinkAt = now
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
