/**
 * Asks again whether bindings still stand, where a connector does not tell when one is gone (preset `descriptor_check`): an
 * account that moved to another channel, a sign-in that died. One channel after the other, so that nothing else has to wait.
 */
import { readDescriptor } from '../legacy/legacy-descriptor.js'
import type { MainLink } from '../legacy/port.js'
import { statusOf } from '../translate/descriptor.js'
import type { Entry } from './channel-table.js'
import type { RouteContext } from './context.js'
import type { DescriptorBoard } from './descriptor-board.js'

const REQUEST_TIMEOUT_MS = 30_000
/** How often to look whether the preset asks for checks, as long as it does not. */
const IDLE_MS = 60_000

export class BindingCheck {
  #cancel: (() => void) | null = null
  #stopped = false
  #round: Entry[] = []

  constructor(
    private readonly context: RouteContext,
    private readonly main: MainLink,
    private readonly board: DescriptorBoard,
  ) {}

  start(): void {
    if (this.#stopped) return
    const { descriptorCheckMs } = this.context.shared.dialect.preset
    this.#cancel = this.context.clock.timer(descriptorCheckMs ?? IDLE_MS, () => {
      if (descriptorCheckMs !== null) this.askAll()
      this.start()
    })
  }

  /** Asks for every channel on which somebody is signed in. A round that runs is enough. */
  askAll(except?: Entry): void {
    const { preset } = this.context.shared.dialect
    if (preset.descriptorCheckMs === null || this.#round.length > 0 || !this.main.up) return
    this.#round = [...this.context.table].filter((entry) => entry !== except && statusOf(entry.descriptor) === 'connected')
    this.#next()
  }

  /** Asks for one channel, and says when its Descriptor has been taken over. */
  ask(entry: Entry, done: () => void = () => {}): void {
    this.main.request('connection.descriptor.get', entry.legacyId, {}, REQUEST_TIMEOUT_MS, (answer) => {
      if (answer.ok && answer.value.error === undefined) this.board.take(entry, readDescriptor(answer.value.payload['connection_descriptor'])?.body ?? null)
      done()
    })
  }

  stop(): void {
    this.#stopped = true
    this.#round = []
    this.#cancel?.()
  }

  #next(): void {
    const entry = this.#round[0]
    if (entry === undefined) return
    this.ask(entry, () => {
      this.#round.shift()
      if (!this.#stopped && this.main.up) this.#next()
      else this.#round = []
    })
  }
}
