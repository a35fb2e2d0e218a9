/** Requests of one link that have no answer yet, by `request_id`: the only place that correlates (PROTOCOL envelope). */
import type { Cancel, Clock } from '../ops/clock.js'
import { err, ok } from '../protocol/errors.js'
import type { RequestId } from '../protocol/ids.js'
import type { Packet } from '../protocol/packet.js'
import type { Answer } from './port.js'

export interface PendingRequest {
  readonly type: string
  readonly timeoutMs: number
  readonly done: (answer: Answer) => void
  /** Gets an answer that comes after `done` said `timeout`. */
  readonly onLate?: ((packet: Packet) => void) | undefined
  /** Asked by the link itself: neither keeps a paused socket reading nor excuses silence. */
  readonly background?: boolean
}

interface Waiting extends PendingRequest {
  readonly cancel: Cancel
}

/** A connector that never answers must not make the table grow for ever. */
const MAX_LATE = 1_000

export class PendingRequests {
  readonly #waiting = new Map<RequestId, Waiting>()
  /** Timed out, with somebody who wants the late answer; oldest first. */
  readonly #late = new Map<RequestId, PendingRequest>()
  #background = 0

  /** `onChange` follows every change of `waiting`. */
  constructor(private readonly clock: Clock, private readonly onChange: () => void) {}

  /** Requests that wait within their timeout. */
  get waiting(): number {
    return this.#waiting.size - this.#background
  }

  /** Tool calls that timed out and may still run in the connector's read loop. */
  get lateCalls(): number {
    return [...this.#late.values()].filter((request) => request.type === 'tool.invoke').length
  }

  add(id: RequestId, request: PendingRequest): void {
    const cancel = this.clock.timer(request.timeoutMs, () => this.#timeOut(id))
    this.#waiting.set(id, { ...request, cancel })
    if (request.background === true) this.#background += 1
    this.onChange()
  }

  /** Delivers an answer, in either error shape. False = it answers nothing that is known here. */
  settle(packet: Packet): boolean {
    const id = packet.requestId
    if (id === undefined || !isAnswer(packet)) return false
    const waiting = this.#take(id)
    if (waiting !== null) {
      waiting.done(ok(packet))
      return true
    }
    const late = this.#late.get(id)
    this.#late.delete(id)
    late?.onLate?.(packet)
    return late !== undefined
  }

  /** The link is gone: what waits is answered `link_lost`, what was late stays unknown. */
  loseAll(): void {
    this.#late.clear()
    for (const id of [...this.#waiting.keys()]) this.#take(id)?.done(err({ kind: 'link_lost', sent: true }))
  }

  #timeOut(id: RequestId): void {
    const request = this.#take(id)
    if (request === null) return
    if (request.onLate !== undefined) this.#keepLate(id, request)
    request.done(err({ kind: 'timeout', sent: true }))
  }

  #keepLate(id: RequestId, request: PendingRequest): void {
    this.#late.set(id, request)
    const [oldest] = this.#late.keys()
    if (this.#late.size > MAX_LATE && oldest !== undefined) this.#late.delete(oldest)
  }

  #take(id: RequestId): Waiting | null {
    const request = this.#waiting.get(id)
    if (request === undefined) return null
    this.#waiting.delete(id)
    request.cancel()
    if (request.background === true) this.#background -= 1
    this.onChange()
    return request
  }
}

/** A push may repeat the `request_id` of what it belongs to (tool progress does) and still answers nothing. */
function isAnswer(packet: Packet): boolean {
  return packet.type.endsWith('.ack') || packet.type === 'pong' || packet.type === 'error'
}
