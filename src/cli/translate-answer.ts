/** What a connector answers to a tool call, offline: its outcome class and the ack of the final that it becomes. */
import type { ErrorCode } from '../protocol/errors.js'
import type { ReplyProof } from '../core/record.js'
import { isObject, type JsonObject, type Packet } from '../protocol/packet.js'
import type { Preset } from '../translate/preset.js'
import { toolOutcome, type ToolOutcome } from '../translate/tool-outcome.js'
import { ackFor } from './translate-final.js'
import type { Request } from './translate-input.js'
import type { Translated, TranslateSession } from './translate-session.js'

type Verdict = Parameters<typeof ackFor>[3]

/** Faults of hello order, identity and shape: no tool call ends so. */
const LINK_ERRORS: readonly string[] = ['hello_required', 'connector_card_id_mismatch', 'connector_id_mismatch', 'unsupported_packet', 'invalid_packet']
const NO_PROOF: ReplyProof = { sentWhen: {}, field: null, recipient: null }
/** Stands for what the stream does not show: the final that the call belonged to. */
const UNSEEN = { messageId: '?', packetId: '?' }

/** Whether a packet of type `error` can be the answer to a tool call. */
export function answersATool(packet: Packet, request: Request | null): boolean {
  return request === null ? !LINK_ERRORS.includes(packet.error?.code ?? '') : request.type === 'tool.invoke'
}

/** Classifies the answer. It belongs to the first final of its channel whose calls are not all answered, where one was seen. */
export function toolAnswered(session: TranslateSession, packet: Packet, request: Request | null, line: number): Translated {
  const channel = session.channel(packet.channelId ?? '')
  const [final] = channel.finals
  const tool = stringOf(packet.payload['tool_id']) ?? request?.toolId ?? null
  const proof = final?.target.proof ?? proofOf(tool, session.preset)
  const outcome = toolOutcome(packet, proof, session.preset)
  const shown = {
    from: packet.type, to: 'chat.message.ack', preset: session.preset.name, outcome: { class: outcome.class, code: outcome.code },
    left_out: [...(packet.error?.message === undefined ? [] : [{ field: 'error.message', why: 'decides the class; it may hold tokens and never reaches xAgent' }]), ...resultFields(packet.payload)],
    ...(final === undefined && { assumed: 'no final was seen on this channel: message_id and reply_to are stand-ins, and the recipient is not checked' }),
    ...(outcome.reopen && { first: 'the channel is opened again, and the call made once more where the connector then says connected' }),
  }
  if (final !== undefined && outcome.class === 'sent' && final.done + 1 < final.steps.length) {
    final.done += 1
    return { out: [], notes: [`${packet.type}: sent, step ${final.done} of ${final.steps.length}; the ack follows the last one`], explain: { ...shown, to: null } }
  }
  if (final !== undefined) channel.finals.shift()
  const verdict = verdictOf(outcome, final?.target.inDoubt === 'retry')
  const code = verdict.status === 'rejected' ? `, ${verdict.code}` : ''
  return { out: [ackFor(packet, line, final ?? UNSEEN, verdict)], notes: [`${packet.type}: outcome ${outcome.class}${code}`], explain: shown }
}

/** docs/protocol-mapping.md "What the ack says". */
function verdictOf(outcome: ToolOutcome, idempotent: boolean): Verdict {
  const rejected = (code: ErrorCode, retryable: boolean): Verdict => ({ status: 'rejected', code, retryable })
  if (outcome.reopen) return rejected('connection_not_authenticated', false)
  switch (outcome.class) {
    case 'sent': return { status: 'accepted' }
    case 'temporary': return rejected('target_temporarily_unavailable', true)
    case 'permanent': case 'auth': return rejected('target_delivery_failed', false)
    case 'in_doubt': return idempotent ? rejected('target_temporarily_unavailable', true) : rejected('delivery_in_doubt', false)
  }
}

/** What the preset asks of this tool's results, without the recipient, who is not known here. */
function proofOf(tool: string | null, { reply, defaultTarget }: Preset): ReplyProof {
  const rule = [...reply, ...(defaultTarget === null ? [] : [defaultTarget])].find((one) => one.tool === tool || one.file?.tool === tool)
  return rule === undefined ? NO_PROOF : { sentWhen: rule.result.sentWhen, field: rule.result.proof, recipient: null }
}

function resultFields(payload: JsonObject): { field: string; why: string }[] {
  const { result } = payload
  return isObject(result) ? Object.keys(result).map((name) => ({ field: `result.${name}`, why: 'proves the sending or not; an ack says no more than that' })) : []
}

const stringOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)
