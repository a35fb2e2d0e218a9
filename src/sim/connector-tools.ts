/** The platform behind a simulated connector: what a tool call does, and how a test scripts that. */
import type { WireError } from '../protocol/errors.js'
import type { JsonObject } from '../protocol/packet.js'
import type { Answers } from './connector-answers.js'
import type { ConnectorEvents, ToolCall } from './connector-events.js'
import type { ConnectorKind, ToolKind } from './connector-kind.js'
import type { ConnectorMemory, SimChannel } from './connector-memory.js'
import type { ConnectorSocket } from './connector-socket.js'
import type { Occurrences } from './occurrences.js'
import { textField, type WirePacket } from './wire-packet.js'

/**
 * How the platform takes one call. `effect` says whether the message reaches the person; `answerAfter` holds the answer back
 * once the effect has happened, and the socket's read loop with it.
 */
export type ToolAnswer = { readonly effect?: boolean; readonly answerAfter?: Promise<unknown> } & (
  /** Sent, with the result as recorded; the default. */
  | { readonly kind: 'sent' }
  /** Another result; sent unless `effect` is false. */
  | { readonly kind: 'result'; readonly result: JsonObject }
  /** Not sent unless `effect` is true. */
  | { readonly kind: 'error'; readonly error: WireError; readonly shape?: 'ack' | 'error' }
  /** The call ends without an answer; sent unless `effect` is false. */
  | { readonly kind: 'no_answer' }
  /** The socket is cut before the effect, or after it without an answer. */
  | { readonly kind: 'drop_socket'; readonly when: 'before_effect' | 'after_effect' }
)

/** Scripts a call: answers at once, or when its promise resolves. `undefined` = sent. */
export type ToolScript = (call: ToolCall) => ToolAnswer | undefined | Promise<ToolAnswer | undefined>

const NOT_AUTHENTICATED = 'connection_not_authenticated'

export class ConnectorTools {
  script: ToolScript = () => undefined

  constructor(
    private readonly kind: ConnectorKind,
    private readonly memory: ConnectorMemory,
    private readonly answers: Answers,
    private readonly events: Occurrences<ConnectorEvents>,
    private readonly now: () => number,
  ) {}

  /** Runs one call to its end; the read loop of the socket waits for it. */
  async run(socket: ConnectorSocket, request: WirePacket, channel: SimChannel | undefined, call: ToolCall): Promise<void> {
    if (!channel?.opener) return this.#notOpen(socket, request)
    const { account } = channel
    const fail = (message: string, code = 'tool_invoke_failed') => this.answers.ackError(socket, request, { code, message })
    if (account === null) return fail(this.kind.notAuthenticated, NOT_AUTHENTICATED)
    const tool = this.kind.tools.get(call.toolId)
    if (tool === undefined) return fail(this.kind.unknownTool(call.toolId))
    const missing = this.#missing(tool, call.arguments)
    if (missing !== null) return fail(missing)
    const recipient = tool.recipient(account, call.arguments)
    if (typeof recipient !== 'string') return fail(recipient.error)
    if (this.#wrongRecipient(call.arguments, recipient)) return fail('media_ref recipient mismatch')
    const answer = (await this.script(call)) ?? { kind: 'sent' }
    // A process that ended meanwhile has done nothing more.
    if (socket.killed) return
    const result = tool.result(account, call.arguments, recipient, this.now())
    if (takesEffect(answer)) this.#reach(call, recipient)
    await answer.answerAfter
    this.#answer(socket, request, call, answer, result)
  }

  #answer(socket: ConnectorSocket, request: WirePacket, call: ToolCall, answer: ToolAnswer, recorded: JsonObject): void {
    switch (answer.kind) {
      case 'sent': return this.answers.ack(socket, request, { result: recorded, tool_id: call.toolId })
      case 'result': return this.answers.ack(socket, request, { result: answer.result, tool_id: call.toolId })
      case 'error':
        if (answer.shape === 'error') return this.answers.error(socket, request, answer.error)
        return this.answers.ackError(socket, request, answer.error)
      case 'no_answer': return
      case 'drop_socket': return socket.terminate()
    }
  }

  /** The call reached nobody: the channel is not open. The kinds differ in shape and code. */
  #notOpen(socket: ConnectorSocket, request: WirePacket): void {
    if (this.kind.notOpenShape === 'ack') {
      return this.answers.ackError(socket, request, { code: NOT_AUTHENTICATED, message: this.kind.notAuthenticated })
    }
    this.answers.error(socket, request, { code: 'connection_not_found', message: 'channel is not bound to a valid connection' })
  }

  #missing(tool: ToolKind, args: JsonObject): string | null {
    for (const [name, text] of tool.needs) if (textField(args, name) === '') return text
    const ref = textField(args, 'media_ref')
    if (!tool.needs.has('media_ref')) return null
    return this.memory.mediaRefs.has(ref) ? null : 'media_ref not found or expired'
  }

  /** An upload is bound to the recipient that it was for. */
  #wrongRecipient(args: JsonObject, recipient: string): boolean {
    const bound = this.memory.media.get(textField(args, 'media_ref'))?.recipient ?? null
    return bound !== null && bound !== recipient
  }

  #reach(call: ToolCall, to: string): void {
    const { channelId, toolId, arguments: args } = call
    this.events.record('sent', { channelId, toolId, to, text: textField(args, 'text'), arguments: args, at: this.now() })
  }
}

function takesEffect(answer: ToolAnswer): boolean {
  if (answer.kind === 'drop_socket') return answer.when === 'after_effect'
  return answer.effect ?? answer.kind !== 'error'
}
