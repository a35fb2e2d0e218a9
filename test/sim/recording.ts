/** The recorded packets, and what of one must be the same in a simulated one: fields and their types, errors word for word. */
import { readFileSync } from 'node:fs'

export interface RecordedCase {
  readonly case: string
  readonly request?: { readonly type: string; readonly payload: Record<string, unknown> }
  readonly packet?: Record<string, unknown>
  readonly body?: Record<string, unknown>
}

export function recording(kind: string): ReadonlyMap<string, RecordedCase> {
  const text = readFileSync(new URL(`../fixtures/packets/${kind}.jsonl`, import.meta.url), 'utf8')
  const cases = text.trim().split('\n').map((line) => JSON.parse(line) as RecordedCase)
  return new Map(cases.map((recorded) => [recorded.case, recorded]))
}

/** Field names and types, whatever their order; errors and fixed words keep their values. */
export function shapeOf(value: unknown, name = ''): unknown {
  // What WeChat's raw message lists is its platform's, and nobody reads it.
  if (name === 'item_list') return 'list'
  if (Array.isArray(value)) return value.map((item) => shapeOf(item))
  if (typeof value === 'string' && KEPT.has(name)) return value.replace(/reply_[\w-]{32}/, 'reply_ref')
  if (typeof value !== 'object' || value === null) return KEPT.has(name) ? value : typeof value
  if (name === 'error') return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, inner]) => [key, shapeOf(inner, key)]))
}

/** Fields whose values are the protocol's or the connector's words, not data. */
const KEPT = new Set([
  'schema', 'type', 'status', 'connector_card_id', 'profile', 'target_type', 'provider', 'label', 'display_name', 'event_kind', 'tool_id',
  'flow_id', 'message', 'poll_interval_millis', 'raw_text', 'text', 'content', 'activation_message', 'message_type', 'media_type',
])
