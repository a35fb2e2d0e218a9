/**
 * Tool calls that an agent makes itself (DESIGN §3 Skill): projected arguments in, listed result fields out, to whom the turn
 * rules say, and each `tool_call_id` runs once, also over a restart.
 */
import { bindNow } from '../core/bind.js'
import { stillLast } from '../core/last-chat.js'
import { RECORD_VERSION, callKey, type CallRecord, type ReplyProof } from '../core/record.js'
import type { Answer, ToolLinks } from '../legacy/port.js'
import { StoreError, err, ok, wireError, type Result } from '../protocol/errors.js'
import type { ToolId } from '../protocol/ids.js'
import { isObject, type JsonObject } from '../protocol/packet.js'
import { scrub } from '../protocol/redact.js'
import { failureOutcome, toolOutcome, type ToolOutcome } from '../translate/tool-outcome.js'
import { addressedArguments, legacyArguments, relayedResult, sends } from '../translate/tool-call.js'
import type { Entry } from './channel-table.js'
import type { RouteContext } from './context.js'

/** A relayed call asks for no proof: its result goes back to the agent, who asked. */
const NO_PROOF: ReplyProof = { sentWhen: {}, field: null, recipient: null }

export type RelayedAnswer = Result<JsonObject>

interface Call {
  readonly entry: Entry
  /** The tool that the agent asked for, and what is called. */
  readonly asked: ToolId
  readonly tool: ToolId
  readonly arguments: JsonObject
  /** Null = the agent gave none: it cannot be repeated. */
  readonly id: string | null
  readonly onProgress: (payload: JsonObject) => void
}

export class RelayedCalls {
  /** Calls that run now, by record key, with everybody who waits for the answer. */
  readonly #running = new Map<string, ((answer: RelayedAnswer) => void)[]>()

  constructor(
    private readonly context: RouteContext,
    private readonly tools: ToolLinks,
  ) {}

  /** Runs a call, joins one that runs, or answers one that has run. */
  relay(entry: Entry, payload: JsonObject, onProgress: (payload: JsonObject) => void, done: (answer: RelayedAnswer) => void): void {
    const tool = typeof payload['tool_id'] === 'string' ? this.context.card()?.tools.get(payload['tool_id'] as ToolId) : undefined
    if (tool === undefined) return done(err(wireError('tool_not_available')))
    const args = legacyArguments(tool, payload['arguments'], entry.legacyId)
    if (!args.ok) return done(args)
    const id = callIdOf(payload)
    const start = (answered: (answer: RelayedAnswer) => void): void => {
      const addressed = this.#addressed(entry, tool.toolId, args.value)
      if (!addressed.ok) return answered(addressed)
      const call: Call = { entry, asked: tool.toolId, tool: addressed.value.tool, arguments: addressed.value.arguments, id, onProgress }
      if (id === null) this.#invoke(call, answered)
      else this.#recorded(call, id, answered)
    }
    if (id === null) start(done)
    else this.#once(entry, id, start, done)
  }

  /** One run for a `tool_call_id`: whoever repeats it waits for the same answer, or gets the one that is known. */
  #once(entry: Entry, id: string, start: (answered: (answer: RelayedAnswer) => void) => void, done: (answer: RelayedAnswer) => void): void {
    const key = callKey(entry.id, id)
    const waiting = this.#running.get(key)
    if (waiting !== undefined) return void waiting.push(done)
    this.#running.set(key, [done])
    const answered = (answer: RelayedAnswer): void => {
      const all = this.#running.get(key) ?? []
      this.#running.delete(key)
      for (const one of all) one(answer)
    }
    this.#stored(key, (known) => {
      if (known === undefined) start(answered)
      else answered(known)
    })
  }

  /** What the store knows of an earlier run; one without an answer may have done its work. */
  #stored(key: string, found: (answer: RelayedAnswer | undefined) => void): void {
    const take = (value: unknown): void => {
      const record = value as CallRecord | undefined
      if (record === undefined || record.until <= this.context.now()) found(undefined)
      else found(record.answer ?? err(wireError('delivery_in_doubt')))
    }
    const failed = (error: unknown): void => {
      if (!(error instanceof StoreError)) throw error
      found(err(wireError('store_unavailable')))
    }
    try {
      const value = this.context.commits.read('call', key)
      if (value instanceof Promise) value.then(take, failed)
      else take(value)
    } catch (error) {
      failed(error)
    }
  }

  /** The call is durable before it leaves, its answer before xAgent gets it. */
  #recorded(call: Call, id: string, answered: (answer: RelayedAnswer) => void): void {
    const key = callKey(call.entry.id, id)
    const record = (answer: CallRecord['answer']): CallRecord => ({ v: RECORD_VERSION, channelId: call.entry.id, answer, until: this.context.now() + this.context.shared.limits.ttlMs })
    const { commits } = this.context
    commits.push([{ op: 'put', kind: 'call', key, value: record(null) }], () => {
      this.#invoke(call, (answer) => {
        // What certainly was not done may be asked for again under the same id.
        const again = !answer.ok && answer.error.code === 'connector_unavailable'
        commits.push([again ? { op: 'delete', kind: 'call', key } : { op: 'put', kind: 'call', key, value: record(answer) }], () => answered(answer))
      })
    })
  }

  #invoke(call: Call, answered: (answer: RelayedAnswer) => void): void {
    const { context } = this
    const startedAt = context.now()
    this.tools.invoke(
      { toolId: call.tool, arguments: call.arguments, channelId: call.entry.legacyId, toolCallId: call.id ?? context.newId('call_'), timeoutMs: context.settings.toolTimeoutMs },
      (answer) => {
        const outcome = answer.ok ? toolOutcome(answer.value, NO_PROOF, context.shared.dialect.preset) : failureOutcome(answer.error.kind, answer.error.sent)
        context.metrics.toolInvoked(call.tool, outcome.class, context.now() - startedAt)
        answered(this.#answer(call.asked, answer, outcome))
      },
      () => context.log.info({ channelId: call.entry.id, tool: call.tool }, 'a relayed tool call was answered after its timeout'),
      (progress) => call.onProgress(projectProgress(call.asked, progress)),
    )
  }

  /** A tool that sends goes to whom the turn rules say (DESIGN §4 rule 7); any other takes the agent's arguments alone. */
  #addressed(entry: Entry, tool: ToolId, args: JsonObject): Result<{ tool: ToolId; arguments: JsonObject }> {
    const { shared } = this.context
    const { target } = bindNow(entry.channel, shared, this.context.now())
    if (!sends(tool, shared.dialect.preset, target)) return ok({ tool, arguments: args })
    if (target === null) return err(wireError('no_reply_target'))
    if (!stillLast(entry.channel, target)) return err(wireError('reply_target_moved'))
    return ok({ tool: target.tool, arguments: addressedArguments(args, target) })
  }

  /** No text of the connector's crosses. */
  #answer(toolId: ToolId, answer: Answer, outcome: ToolOutcome): RelayedAnswer {
    if (outcome.class === 'sent' && answer.ok) {
      return ok({ tool_id: toolId, result: relayedResult(answer.value.payload['result'], this.context.shared.dialect.preset.resultFields) })
    }
    this.context.log.warn({ tool: toolId, code: outcome.code, detail: outcome.detail, outcome: outcome.class }, 'a relayed tool call failed')
    if (outcome.class === 'temporary') return err(wireError('connector_unavailable', 'certainly not done; it can be tried again'))
    if (outcome.class === 'in_doubt' || outcome.class === 'sent') return err(wireError('delivery_in_doubt'))
    return err(wireError('tool_invoke_failed'))
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
