/** Calls on the connector's tools: the steps of finals, and the calls that an agent makes itself (DESIGN §3, §5). */
import { bindNow } from '../core/bind.js'
import type { Effect } from '../core/effect.js'
import { stillLast } from '../core/last-chat.js'
import type { Answer, ToolLinks } from '../legacy/port.js'
import { err, ok, wireError, type Result } from '../protocol/errors.js'
import type { ToolId } from '../protocol/ids.js'
import { isObject, type JsonObject } from '../protocol/packet.js'
import { scrub } from '../protocol/redact.js'
import { failureOutcome, toolOutcome, type ToolOutcome } from '../translate/tool-outcome.js'
import { addressedArguments, legacyArguments, relayedResult, sends } from '../translate/tool-call.js'
import type { ReplyProof } from '../core/record.js'
import type { ChannelRunner } from './channel-runner.js'
import type { Entry } from './channel-table.js'
import type { RouteContext } from './context.js'

/** A relayed call asks for no proof: its result goes back to the agent, who asked. */
const NO_PROOF: ReplyProof = { sentWhen: {}, field: null, recipient: null }
const MAX_REMEMBERED_CALLS = 1_000

type RelayedAnswer = Result<JsonObject>

export class LegacyCalls {
  /** By channel and `tool_call_id`: a repeated call runs once (DESIGN §3 Skill). */
  readonly #relayed = new Map<string, { answer: RelayedAnswer | null; waiting: ((answer: RelayedAnswer) => void)[] }>()

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
      { toolId: effect.tool, channelId: entry.legacyId, arguments: { ...effect.arguments, connector_channel_id: entry.legacyId }, toolCallId: effect.toolCallId, timeoutMs: this.context.settings.toolTimeoutMs },
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

  /** Runs a call that an agent makes: projected arguments in, listed result fields out, no text of the connector's. */
  relay(entry: Entry, payload: JsonObject, onProgress: (payload: JsonObject) => void, done: (answer: RelayedAnswer) => void): void {
    const tool = typeof payload['tool_id'] === 'string' ? this.context.card()?.tools.get(payload['tool_id'] as ToolId) : undefined
    if (tool === undefined) return done(err(wireError('tool_not_available')))
    const args = legacyArguments(tool, payload['arguments'], entry.legacyId)
    if (!args.ok) return done(args)
    const call = this.#addressed(entry, tool.toolId, args.value)
    if (!call.ok) return done(call)
    const toolCallId = callIdOf(payload)
    const repeated = toolCallId === null ? null : this.#repeated(`${entry.id}/${toolCallId}`, done)
    if (repeated === 'answered') return
    const startedAt = this.context.now()
    this.tools.invoke(
      { ...call.value, channelId: entry.legacyId, toolCallId: toolCallId ?? this.context.newId('call_'), timeoutMs: this.context.settings.toolTimeoutMs },
      (answer) => {
        const outcome = this.#outcomeOf(answer, NO_PROOF)
        this.context.metrics.toolInvoked(call.value.toolId, outcome.class, this.context.now() - startedAt)
        const relayed = this.#relayedAnswer(tool.toolId, answer, outcome)
        if (toolCallId === null) done(relayed)
        else this.#settle(`${entry.id}/${toolCallId}`, relayed)
      },
      () => this.context.log.info({ channelId: entry.id, tool: tool.toolId }, 'a relayed tool call was answered after its timeout'),
      (progress) => onProgress(projectProgress(tool.toolId, progress)),
    )
  }

  /** Shows or hides "is typing"; never while calls wait, and whatever comes of it touches no message (v2 §8). */
  typing(entry: Entry, { target, on }: Extract<Effect, { type: 'typing' }>): void {
    if (this.tools.waiting > 0 || !entry.channel.legacyOpen) return
    const startedAt = this.context.now()
    this.tools.invoke(
      {
        toolId: target.tool, channelId: entry.legacyId, arguments: { ...target.arguments, [target.flag]: on, connector_channel_id: entry.legacyId },
        toolCallId: this.context.newId('typing_'), timeoutMs: this.context.settings.toolTimeoutMs,
      },
      (answer) => this.context.metrics.toolInvoked(target.tool, this.#outcomeOf(answer, NO_PROOF).class, this.context.now() - startedAt),
      () => {},
    )
  }

  /** A tool that sends goes to whom the turn rules say (DESIGN §4 rule 7); any other takes the agent's arguments alone. */
  #addressed(entry: Entry, toolId: ToolId, args: JsonObject): Result<{ toolId: ToolId; arguments: JsonObject }> {
    const { shared } = this.context
    const target = bindNow(entry.channel, shared, this.context.now()).target
    if (!sends(toolId, shared.dialect.preset, target)) return ok({ toolId, arguments: args })
    if (target === null) return err(wireError('no_reply_target'))
    if (!stillLast(entry.channel, target)) return err(wireError('reply_target_moved'))
    return ok({ toolId: target.tool, arguments: addressedArguments(args, target) })
  }

  #outcomeOf(answer: Answer, proof: ReplyProof): ToolOutcome {
    return answer.ok ? toolOutcome(answer.value, proof, this.context.shared.dialect.preset) : failureOutcome(answer.error.kind, answer.error.sent)
  }

  #relayedAnswer(toolId: ToolId, answer: Answer, outcome: ToolOutcome): RelayedAnswer {
    if (outcome.class === 'sent' && answer.ok) {
      return ok({ tool_id: toolId, result: relayedResult(answer.value.payload['result'], this.context.shared.dialect.preset.resultFields) })
    }
    this.context.log.warn({ tool: toolId, code: outcome.code, detail: outcome.detail, outcome: outcome.class }, 'a relayed tool call failed')
    if (outcome.class === 'temporary') return err(wireError('connector_unavailable', 'certainly not done; it can be tried again'))
    if (outcome.class === 'in_doubt' || outcome.class === 'sent') return err(wireError('delivery_in_doubt'))
    return err(wireError('tool_invoke_failed'))
  }

  /** Joins a call that runs, or answers one that has run; null for a new one, whose `done` is kept. */
  #repeated(key: string, done: (answer: RelayedAnswer) => void): 'answered' | null {
    const known = this.#relayed.get(key)
    if (known !== undefined) {
      if (known.answer !== null) done(known.answer)
      else known.waiting.push(done)
      return 'answered'
    }
    const [oldest] = this.#relayed.keys()
    if (this.#relayed.size >= MAX_REMEMBERED_CALLS && oldest !== undefined) this.#relayed.delete(oldest)
    this.#relayed.set(key, { answer: null, waiting: [done] })
    return null
  }

  #settle(key: string, answer: RelayedAnswer): void {
    const call = this.#relayed.get(key)
    if (call === undefined) return
    // What certainly was not done may be asked for again under the same id.
    if (!answer.ok && answer.error.code === 'connector_unavailable') this.#relayed.delete(key)
    call.answer = answer
    for (const done of call.waiting.splice(0)) done(answer)
  }
}

function callIdOf(payload: JsonObject): string | null {
  const context = payload['context']
  const id = isObject(context) ? context['tool_call_id'] : undefined
  return typeof id === 'string' && id !== '' ? id : null
}

/** `tool.progress.push`, whitelisted (PROTOCOL "Packets"). */
function projectProgress(toolId: ToolId, progress: JsonObject): JsonObject {
  const { status, message, progress: value } = progress as { status?: unknown; message?: unknown; progress?: unknown }
  return {
    tool_id: toolId,
    ...(typeof status === 'string' && { status: scrub(status, 64) }),
    ...(typeof message === 'string' && { message: scrub(message) }),
    ...(typeof value === 'number' && Number.isFinite(value) && { progress: value }),
  }
}

