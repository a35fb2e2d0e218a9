/** What a connector's answer to `tool.invoke` says about the message: the preset's outcome classes (DESIGN §5). */
import type { ReplyProof } from '../core/record.js'
import { fieldText } from '../protocol/im-v1.js'
import { isObject, type JsonObject, type Packet } from '../protocol/packet.js'
import { scrub } from '../protocol/redact.js'
import { contradicts, holds } from './conversation.js'
import type { OutcomeClass, Preset } from './preset.js'

export interface ToolOutcome {
  readonly class: OutcomeClass
  /** Stable code for logs and dead letters. */
  readonly code: string
  /** What the connector said, without secrets; for logs and dead letters only, never for xAgent. */
  readonly detail: string | null
  /** The connector does not know the channel as open or signed in: re-open and try once more (DESIGN §5). */
  readonly reopen: boolean
}

const REOPEN_CODES: readonly string[] = ['connection_not_authenticated', 'connection_not_found', 'channel_not_open']

/** Classifies an answer: an ack with a result, an ack with an error, or a packet of type `error`. */
export function toolOutcome(answer: Packet, proof: ReplyProof, preset: Preset): ToolOutcome {
  if (answer.error !== undefined) return errorOutcome(answer.error.code, answer.error.message ?? '', preset)
  const result = answer.payload['result']
  return resultOutcome(isObject(result) ? result : {}, proof)
}

/** How a call failed without an answer. What never left the gateway was certainly not sent; everything else is in doubt. */
export function failureOutcome(kind: 'timeout' | 'link_lost' | 'not_connected', sent: boolean): ToolOutcome {
  if (!sent) return { class: 'temporary', code: 'connector_unavailable', detail: null, reopen: false }
  return { class: 'in_doubt', code: kind === 'timeout' ? 'tool_timeout' : 'link_lost', detail: null, reopen: false }
}

function errorOutcome(code: string, message: string, preset: Preset): ToolOutcome {
  const said = `${code}: ${message}`
  const rule = preset.outcomes.find((outcome) => said.includes(outcome.contains))
  return {
    class: rule?.class ?? 'in_doubt',
    code: scrub(code, 64),
    detail: message === '' ? null : scrub(message),
    reopen: REOPEN_CODES.includes(code),
  }
}

/** "Sent" counts only with its proof, and only when the result names the recipient that was meant. */
function resultOutcome(result: JsonObject, proof: ReplyProof): ToolOutcome {
  const doubt = (code: string): ToolOutcome => ({ class: 'in_doubt', code, detail: null, reopen: false })
  if (!holds(proof.sentWhen, result)) return doubt('result_not_sent')
  if (proof.recipient !== null && contradicts({ [proof.recipient.field]: [proof.recipient.value] }, result)) return doubt('other_recipient')
  if (proof.field !== null) {
    const value = fieldText(result, proof.field)
    if (value === null || value === '' || value === '0') return doubt('sent_without_proof')
  }
  return { class: 'sent', code: 'sent', detail: null, reopen: false }
}
