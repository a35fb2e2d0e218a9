/** Calls on the connector's tools that the steps of finals are (DESIGN §5). */
import type { Effect } from '../core/effect.js'
import type { ReplyProof } from '../core/record.js'
import type { Answer, ToolLinks } from '../legacy/port.js'
import { failureOutcome, toolOutcome, type ToolOutcome } from '../translate/tool-outcome.js'
import type { ChannelRunner } from './channel-runner.js'
import type { Entry } from './channel-table.js'
import type { RouteContext } from './context.js'

export class LegacyCalls {
  constructor(
    private readonly context: RouteContext,
    private readonly tools: ToolLinks,
    private readonly runner: () => ChannelRunner,
  ) {}

  /** Runs one step of a final; its answer, and a late one, come back to the channel as events. */
  invokeStep(entry: Entry, effect: Extract<Effect, { type: 'invoke' }>): void {
    const { messageId, step, proof } = effect
    const startedAt = this.context.now()
    this.tools.invoke(
      {
        toolId: effect.tool, channelId: entry.legacyId, arguments: { ...effect.arguments, connector_channel_id: entry.legacyId }, toolCallId: effect.toolCallId,
        timeoutMs: this.context.settings.toolTimeoutMs,
      },
      (answer) => {
        const outcome = this.#outcomeOf(answer, proof)
        this.context.metrics.toolInvoked(effect.tool, outcome.class, this.context.now() - startedAt)
        this.runner().dispatch(entry, { type: 'step_answered', messageId, step, outcome })
      },
      (packet) => {
        const outcome = toolOutcome(packet, proof, this.context.shared.dialect.preset)
        this.context.log.info({ channelId: entry.id, messageId, step: step + 1, outcome: outcome.class }, 'a tool call was answered after its timeout')
        this.runner().dispatch(entry, { type: 'late_answer', messageId, step, outcome })
      },
    )
  }

  #outcomeOf(answer: Answer, proof: ReplyProof): ToolOutcome {
    return answer.ok ? toolOutcome(answer.value, proof, this.context.shared.dialect.preset) : failureOutcome(answer.error.kind, answer.error.sent)
  }
}
