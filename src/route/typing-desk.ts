/**
 * "Is typing" (v2 §8): one call at a time for the whole route, in order, and never in the way of a message: a tool that does not
 * answer is left alone for a while.
 */
import type { Effect } from '../core/effect.js'
import type { TypingTarget } from '../core/record.js'
import type { ToolLinks } from '../legacy/port.js'
import { failureOutcome, toolOutcome } from '../translate/tool-outcome.js'
import type { Entry } from './channel-table.js'
import type { RouteContext } from './context.js'

const ANSWER_TIMEOUT_MS = 3_000
/** After a call without an answer nothing is shown for this long. */
const REST_MS = 60_000
/** While calls of messages wait, "is typing" does, too. */
const LOOK_AGAIN_MS = 250

interface Wanted {
  readonly entry: Entry
  readonly target: TypingTarget
  readonly on: boolean
}

export class TypingDesk {
  /** What is to be said next, one for each channel and person: only the latest of what was not said yet counts. */
  readonly #wanted = new Map<string, Wanted>()
  #running = false
  #restUntil = 0
  #cancel: (() => void) | null = null

  constructor(
    private readonly context: RouteContext,
    private readonly tools: ToolLinks,
  ) {}

  /** Calls that run now: nobody need wait for their end. */
  get running(): number {
    return this.#running ? 1 : 0
  }

  say(entry: Entry, { target, on }: Extract<Effect, { type: 'typing' }>): void {
    const key = `${entry.id} ${target.tool} ${JSON.stringify(target.arguments)}`
    // To the end, so that another person's turn is not passed over.
    this.#wanted.delete(key)
    this.#wanted.set(key, { entry, target, on })
    this.#next()
  }

  stop(): void {
    this.#wanted.clear()
    this.#cancel?.()
  }

  #next(): void {
    const [first] = this.#wanted
    if (first === undefined || this.#running || this.#cancel !== null) return
    if (this.tools.waiting > 0) return this.#later()
    const [key, wanted] = first
    this.#wanted.delete(key)
    if (!wanted.entry.channel.legacyOpen || this.context.now() < this.#restUntil) return this.#next()
    this.#call(wanted)
  }

  #call({ entry, target, on }: Wanted): void {
    const { context } = this
    const startedAt = context.now()
    this.#running = true
    this.tools.invoke(
      {
        toolId: target.tool, channelId: entry.legacyId, arguments: { ...target.arguments, [target.flag]: on, connector_channel_id: entry.legacyId },
        toolCallId: context.newId('typing_'), timeoutMs: Math.min(ANSWER_TIMEOUT_MS, context.settings.toolTimeoutMs),
      },
      (answer) => {
        this.#running = false
        if (!answer.ok && answer.error.kind === 'timeout') this.#restUntil = context.now() + REST_MS
        const outcome = answer.ok ? toolOutcome(answer.value, NO_PROOF, context.shared.dialect.preset) : failureOutcome(answer.error.kind, answer.error.sent)
        context.metrics.toolInvoked(target.tool, outcome.class, context.now() - startedAt)
        this.#next()
      },
      () => {},
    )
  }

  #later(): void {
    this.#cancel = this.context.clock.timer(LOOK_AGAIN_MS, () => {
      this.#cancel = null
      this.#next()
    })
  }
}

const NO_PROOF = { sentWhen: {}, field: null, recipient: null } as const
