/** Who is talking: conversation, sender, group, acceptance (DESIGN §4 "Turns", "Not forwarded"). Pure preset reading. */
import { createHash } from 'node:crypto'
import { fieldText } from '../protocol/im-v1.js'
import type { ConversationKey } from '../protocol/ids.js'
import type { JsonObject } from '../protocol/packet.js'
import type { Condition, Preset } from './preset.js'

/** Stands in a condition for any value but an empty one. */
const ANY = '*'

/** Whether every field of a condition holds one of its literal values. A field that is absent fails it. */
export function holds(condition: Condition, payload: JsonObject): boolean {
  return Object.entries(condition).every(([field, values]) => {
    const value = fieldText(payload, field)
    return value !== null && values.some((wanted) => String(wanted) === value || (wanted === ANY && value !== ''))
  })
}

/** Like `holds`, but a field that is absent does not decide. */
export function contradicts(condition: Condition, payload: JsonObject): boolean {
  return Object.entries(condition).some(([field, values]) => {
    const value = fieldText(payload, field)
    return value !== null && !values.some((wanted) => String(wanted) === value)
  })
}

export function firstField(payload: JsonObject, names: readonly string[]): string | null {
  for (const name of names) {
    const value = fieldText(payload, name)
    if (value !== null && value !== '') return value
  }
  return null
}

/** The conversation a push belongs to; null where the preset knows only one per channel. */
export function conversationOf(payload: JsonObject, preset: Preset): ConversationKey | null {
  if (preset.conversation.length === 0) return null
  const parts = preset.conversation.map((alternatives) => firstField(payload, alternatives) ?? '')
  return (parts.length === 1 ? parts[0] : digest(parts)) as ConversationKey
}

/** The fields that told the conversation of a push, for a person who wants to know what was inferred. */
export function conversationFields(payload: JsonObject, preset: Preset): string[] {
  return preset.conversation.flatMap((alternatives) => alternatives.find((name) => firstField(payload, [name]) !== null) ?? [])
}

/** No sign of a group counts as private. */
export function isGroup(payload: JsonObject, preset: Preset): boolean {
  return preset.groupWhen.some((condition) => holds(condition, payload))
}

/** `accept` of the configuration: everybody, private chats, or listed conversation and sender ids. */
export function isAccepted(payload: JsonObject, preset: Preset, accept: 'all' | 'private' | readonly string[]): boolean {
  if (accept === 'all') return true
  if (accept === 'private') return !isGroup(payload, preset)
  return preset.fields.acceptable.some((field) => {
    const value = fieldText(payload, field)
    return value !== null && value !== '' && accept.includes(value)
  })
}

/** A hash over a list that no other list of strings shares: every part goes in with its length in bytes. */
export function digest(parts: readonly string[]): string {
  const joined = parts.map((part) => `${Buffer.byteLength(part)}:${part}`).join('')
  return createHash('sha256').update(joined).digest('base64url').slice(0, 32)
}
