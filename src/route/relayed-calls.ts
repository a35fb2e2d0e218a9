/**
 * Tool calls that an agent makes itself (DESIGN §3 Skill): projected arguments in, listed result fields out, to whom the turn
 * rules say, and each `tool_call_id` runs once, also over a restart.
 */
import { bindNow, living } from '../core/bind.js'
import { stillLast } from '../core/last-chat.js'
import { RECORD_VERSION, callKey, type CallRecord, type ReplyProof, type ReplyTarget } from '../core/record.js'
import type { Answer, ToolLinks } from '../legacy/port.js'
import { StoreError, err, ok, wireError, type Result } from '../protocol/errors.js'
import type { ToolId } from '../protocol/ids.js'
import { IM_V2 } from '../protocol/im-v2.js'
import { isObject, type JsonObject } from '../protocol/packet.js'
import { scrub } from '../protocol/redact.js'
import { failureOutcome, toolOutcome, type ToolOutcome } from '../translate/tool-outcome.js'
import { digest } from '../translate/conversation.js'
import { addressedArguments, legacyArguments, relayedResult, sends } from '../translate/tool-call.js'
import type { ProjectedTool } from '../translate/card.js'
import type { Entry } from './channel-table.js'
import type { RouteContext } from './context.js'
import type { FileSender } from './file-sender.js'

/** A relayed call asks for no proof: its result goes back to the agent, who asked. */
const NO_PROOF: ReplyProof = { sentWhen: {}, field: null, recipient: null }

export type RelayedAnswer = Result<JsonObject>

const OTHER_CALL: RelayedAnswer = err(wireError('invalid_packet', 'the same tool_call_id came with another tool or other arguments'))

/** Answers of calls that certainly have done nothing. */
const NOT_DONE: ReadonlySet<string> = new Set(['connector_unavailable', 'no_reply_target', 'reply_target_moved'])

interface Call {
  readonly entry: Entry
  /** The tool that the agent asked for, and what is called. */
  readonly asked: ToolId
  readonly tool: ToolId
  readonly arguments: JsonObject
  readonly target: ReplyTarget | null
  /** Null = the agent gave none: it cannot be repeated. */
  readonly id: string | null
  readonly onProgress: (payload: JsonObject) => void
}

/** What is called for whom, and what an upload before it has to say. */
interface Addressed {
  readonly tool: ToolId
  readonly arguments: JsonObject
  /** The file to be uploaded before: the gateway's reference, and the argument that gets the connector's. */
  readonly file: { readonly ref: unknown; readonly argument: string; readonly uploadFields: Readonly<Record<string, string>> } | null
  /** Null = it reaches nobody, or whom its own arguments say. */
  readonly target: ReplyTarget | null
}

export class RelayedCalls {
  /** Calls that run now, by record key, with everybody who waits for the answer. */
  readonly #running = new Map<string, { readonly contentHash: string; readonly waiting: ((answer: RelayedAnswer) => void)[] }>()

  #unanswered = 0

  constructor(
    private readonly context: RouteContext,
    private readonly tools: ToolLinks,
    /** Null = files are not carried. */
    private readonly sender: FileSender | null,
  ) {}

  /** Calls that have no answer yet, those included whose file is being uploaded. */
  get running(): number {
    return this.#unanswered
  }

  /** Runs a call, joins one that runs, or answers one that has run. */
  relay(entry: Entry, payload: JsonObject, onProgress: (payload: JsonObject) => void, answered: (answer: RelayedAnswer) => void): void {
    this.#unanswered += 1
    this.#relay(entry, payload, onProgress, (answer) => {
      this.#unanswered -= 1
      answered(answer)
    })
  }

  #relay(entry: Entry, payload: JsonObject, onProgress: (payload: JsonObject) => void, done: (answer: RelayedAnswer) => void): void {
    const tool = typeof payload['tool_id'] === 'string' ? this.context.card()?.tools.get(payload['tool_id'] as ToolId) : undefined
    if (tool === undefined) return done(err(wireError('tool_not_available')))
    const args = legacyArguments(tool, payload['arguments'], entry.legacyId)
    if (!args.ok) return done(args)
    const id = callIdOf(payload)
    const contentHash = digest([tool.toolId, JSON.stringify(args.value)])
    const start = (answered: (answer: RelayedAnswer) => void): void => {
      const addressed = this.#addressed(entry, tool, args.value)
      if (!addressed.ok) return answered(addressed)
      this.#withFile(entry, addressed.value, (ready) => {
        if (!ready.ok) return answered(ready)
        const call: Call = { entry, asked: tool.toolId, tool: addressed.value.tool, arguments: ready.value, target: addressed.value.target, id, onProgress }
        if (id === null) this.#invoke(call, answered)
        else this.#recorded(call, id, contentHash, answered)
      })
    }
    if (id === null) start(done)
    else this.#once(callKey(entry.id, id), contentHash, start, done)
  }

  /** One run for a `tool_call_id`: whoever repeats it waits for the same answer, or gets the one that is known. */
  #once(key: string, contentHash: string, start: (answered: (answer: RelayedAnswer) => void) => void, done: (answer: RelayedAnswer) => void): void {
    const running = this.#running.get(key)
    if (running !== undefined) return running.contentHash === contentHash ? void running.waiting.push(done) : done(OTHER_CALL)
    this.#running.set(key, { contentHash, waiting: [done] })
    const answered = (answer: RelayedAnswer): void => {
      const all = this.#running.get(key)?.waiting ?? []
      this.#running.delete(key)
      for (const one of all) one(answer)
    }
    this.#stored(key, contentHash, (known) => {
      if (known === undefined) start(answered)
      else answered(known)
    })
  }

  /** What the store knows of an earlier run; one without an answer may have done its work. */
  #stored(key: string, contentHash: string, found: (answer: RelayedAnswer | undefined) => void): void {
    const take = (value: unknown): void => {
      const record = value as CallRecord | undefined
      if (record === undefined || record.until <= this.context.now()) found(undefined)
      else if (record.contentHash !== contentHash) found(OTHER_CALL)
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
  #recorded(call: Call, id: string, contentHash: string, answered: (answer: RelayedAnswer) => void): void {
    const key = callKey(call.entry.id, id)
    const record = (answer: CallRecord['answer']): CallRecord => ({ v: RECORD_VERSION, channelId: call.entry.id, contentHash, answer, until: this.context.now() + this.context.shared.limits.ttlMs })
    const { commits } = this.context
    commits.push([{ op: 'put', kind: 'call', key, value: record(null) }], () => {
      this.#invoke(call, (answer) => {
        // What certainly was not done may be asked for again under the same id.
        const again = !answer.ok && NOT_DONE.has(answer.error.code)
        commits.push([again ? { op: 'delete', kind: 'call', key } : { op: 'put', kind: 'call', key, value: record(answer) }], () => answered(answer))
      })
    })
  }

  /** Files and records take their time: whom it was for may be out of reach by now. */
  #invoke(call: Call, answered: (answer: RelayedAnswer) => void): void {
    const { context } = this
    const lost = call.target === null ? null : this.#lost(call.entry, call.target)
    if (lost !== null) return answered(lost)
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
  #addressed(entry: Entry, { toolId: tool, arguments: names }: ProjectedTool, args: JsonObject): Result<Addressed> {
    const { shared } = this.context
    const name = names.get('file_ref')
    const given = name === undefined || args[name] === undefined ? null : { ref: args[name], argument: name, uploadFields: {} }
    const asItIs: Result<Addressed> = ok({ tool, arguments: args, file: given, target: null })
    // A tool that was written for v2 says by its own arguments whom it reaches.
    if (this.context.card()?.spoken === IM_V2) return asItIs
    const { target } = bindNow(entry.channel, shared, this.context.now())
    const what = sends(tool, shared.dialect.preset, shared.dialect.tools, target)
    if (what === null) return asItIs
    if (target === null || what === 'unclear') return err(wireError('no_reply_target'))
    const lost = this.#lost(entry, target)
    if (lost !== null) return lost
    const channel = { connector_channel_id: entry.legacyId }
    if (what === 'text') return ok({ tool: target.tool, arguments: { ...channel, ...addressedArguments(tool, args, target) }, file: null, target })
    if (target.file === null) return err(wireError('files_not_supported'))
    const { refArgument, uploadFields } = target.file
    const file = given === null ? null : { ref: given.ref, argument: refArgument, uploadFields }
    return ok({ tool: target.file.tool, arguments: { ...channel, ...target.file.arguments }, file, target })
  }

  #lost(entry: Entry, target: ReplyTarget): RelayedAnswer & { ok: false } | null {
    if (living(entry.channel, target, this.context.now()) === null) return err(wireError('no_reply_target'))
    return stillLast(entry.channel, target) ? null : err(wireError('reply_target_moved'))
  }

  /** A file that the agent names by the gateway's reference goes to the connector first, whose reference replaces it. */
  #withFile(entry: Entry, { arguments: args, file }: Addressed, then: (args: Result<JsonObject>) => void): void {
    if (file === null) return then(ok(args))
    if (typeof file.ref !== 'string' || this.sender === null) return then(err(wireError('file_not_available')))
    void this.sender.upload(entry, file.ref, file.uploadFields).then((uploaded) => {
      if (uploaded.ok) return then(ok({ ...args, [file.argument]: uploaded.value }))
      this.context.log.warn({ channelId: entry.id, code: uploaded.error.code }, 'the file of a relayed tool call could not be uploaded')
      then(err(wireError(uploaded.error.retry ? 'connector_unavailable' : uploaded.error.code === 'file_not_available' ? 'file_not_available' : 'file_refused')))
    })
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
