/** `translate --explain` for pushes: which v2 field came from which v1 field, and what stayed behind and why. Names, never values. */
import type { ReplyAddress } from '../core/record.js'
import { FORBIDDEN_FIELDS } from '../protocol/im-v2.js'
import { fieldText, readPush } from '../protocol/im-v1.js'
import { isObject, type JsonObject } from '../protocol/packet.js'
import { conversationFields, firstField, holds } from '../translate/conversation.js'
import type { TranslatedPush } from '../translate/message-push.js'
import type { Preset, ReplyRule } from '../translate/preset.js'

interface LeftOut {
  readonly field: string
  readonly why: string
  readonly secret?: true
}

/** Names whose values open something, or point at something that is not xAgent's. */
const SECRET_NAME = /token|secret|passw|key|auth|credential|cookie|ticket|sign|encrypt|session|_refs?$|_url$|^url$/i
const FILE_KEYS: readonly string[] = ['files', 'media', 'media_refs']
/** Filled by the answer, not by the push. */
const OPEN_TEMPLATES: readonly string[] = ['{text}', '{file_ref}', '{typing}']
const WRAPPED: readonly string[] = ['text', 'content', 'activation_message']

/** The whole explanation of one push. */
export function explainPush(payload: JsonObject, push: TranslatedPush, preset: Preset): JsonObject {
  const fields = push.kind === 'message' ? fieldsOf(payload, push, preset) : {}
  const answer = push.kind === 'message' ? explainAnswer(payload, push.target, preset) : null
  return {
    from: 'message.push', to: push.kind === 'message' ? 'chat.message' : null, preset: preset.name, outcome: outcomeOf(push), fields,
    left_out: leftOut(payload, push, preset), answer,
    conversation: conversationFields(payload, preset), group: !push.privateChat, counted: [...push.deviations],
  }
}

function outcomeOf(push: TranslatedPush): JsonObject {
  switch (push.kind) {
    case 'message': return { kind: 'forwarded' }
    case 'not_forwarded': return { kind: 'not_forwarded', reason: push.reason }
    case 'empty': return { kind: 'empty', dead_letter: 'empty_message' }
    case 'files_only': return { kind: 'files_not_supported', dead_letter: 'files_not_supported' }
  }
}

function fieldsOf(payload: JsonObject, push: Extract<TranslatedPush, { kind: 'message' }>, preset: Preset): JsonObject {
  const time = preset.fields.time.find((field) => fieldText(payload, field) === String(push.createdAt))
  const filesKey = FILE_KEYS.find((key) => Array.isArray(payload[key]))
  return {
    message_id: identityOf(payload, push, preset),
    ...(push.body.text !== '' && { text: wordsOf(payload, push.body.text) }),
    ...(push.body.files.length > 0 && {
      files: `${filesKey ?? 'files'}[]: kind, name, mime type and size, as far as the bytes agree; file_ref and download_url are the gateway's own (here stand-ins)`,
    }),
    created_at: time ?? 'the moment of takeover (here the time of the packet)',
  }
}

function identityOf(payload: JsonObject, push: TranslatedPush, preset: Preset): string {
  const own = fieldText(payload, preset.identity.at(-1) ?? '') ?? ''
  if (own !== '') return push.messageId === own ? preset.identity.join('') : `hash of ${preset.identity.join(', ')}`
  const time = firstField(payload, preset.fields.time)
  return time === null || time === '0' ? 'a new id: the push has neither id nor time' : `hash of ${usedField(payload, preset.fields.sender) ?? 'no sender'}, ${usedField(payload, preset.fields.time) ?? 'no time'} and the words`
}

const usedField = (payload: JsonObject, names: readonly string[]): string | undefined => names.find((name) => firstField(payload, [name]) !== null)

function wordsOf(payload: JsonObject, text: string): string {
  const source = 'raw_text' in payload ? 'raw_text' : 'text'
  const said = payload[source]
  return said === text ? source : `${source}, without leading mentions, half characters replaced`
}

/** Where an answer would go: tool, and for each argument the field that fills it. Null = it would be refused. */
export function explainAnswer(payload: JsonObject, target: ReplyAddress | null, preset: Preset): JsonObject | null {
  if (target === null) return null
  const rule = ruleOf(payload, target, preset)
  return {
    tool: target.tool,
    arguments: sources(target.arguments, rule?.arguments, { [target.textArgument]: 'the words of the answer' }),
    ...(target.file !== null && {
      file: { tool: target.file.tool, arguments: sources(target.file.arguments, rule?.file?.arguments, { [target.file.refArgument]: 'the connector\'s reference after the upload' }), upload_fields: sources(target.file.uploadFields, rule?.file?.uploadFields) },
    }),
    ...(target.typing !== null && { typing: { tool: target.typing.tool, arguments: sources(target.typing.arguments, preset.typing?.arguments, { [target.typing.flag]: 'true or false' }) } }),
    rule: rule === null ? 'inferred from the Card' : 'from the preset',
    valid_for_ms: target.expiresAt - target.takenAt,
    ...(target.lastChatOnly && { only_while: 'this is the private chat that wrote last' }),
  }
}

function ruleOf(payload: JsonObject, target: ReplyAddress, { reply }: Preset): ReplyRule | null {
  const wanted = [target.textArgument, ...Object.keys(target.arguments)].sort().join()
  return reply.find((rule) => holds(rule.when, payload) && Object.keys(rule.arguments).sort().join() === wanted && (rule.tool === target.tool || rule.tool.startsWith('{'))) ?? null
}

/** Argument → the push's field, read off the rule's template. */
function sources(filled: Readonly<Record<string, string>>, templates: Readonly<Record<string, string>> | undefined, open: JsonObject = {}): JsonObject {
  const named = Object.keys(filled).map((name) => {
    const template = templates?.[name] ?? ''
    return [name, template.startsWith('{') && template.endsWith('}') ? `the push's ${template.slice(1, -1)}` : 'a fixed value of the preset']
  })
  return { ...open, ...Object.fromEntries(named) as JsonObject }
}

/** Every field of the push that does not cross as it is, deepest names included. */
function leftOut(payload: JsonObject, push: TranslatedPush, preset: Preset): LeftOut[] {
  const crossed = push.kind === 'message' ? crossedFields(payload, push, preset) : new Set<string>()
  const kept = keptForAnswer(preset)
  return [...leaves(payload)].filter((path) => !crossed.has(path)).map((path) => {
    const why = reasonFor(path, kept, preset)
    return { field: path, why, ...(SECRET_NAME.test(lastName(path)) && { secret: true as const }) }
  })
}

function crossedFields(payload: JsonObject, push: Extract<TranslatedPush, { kind: 'message' }>, preset: Preset): Set<string> {
  const { message_id: id, text, created_at: at } = fieldsOf(payload, push, preset)
  const names = new Set(readPush(payload).files.map(({ filename }) => filename))
  // A name that holds a reference is replaced by what the file is.
  const named = push.body.files.every(({ filename }) => names.has(filename)) ? ['filename'] : []
  const files = FILE_KEYS.flatMap((key) => ['type', 'media_type', 'mime_type', 'content_type', 'byte_size', ...named].map((name) => `${key}[].${name}`))
  return new Set([id, at, typeof text === 'string' ? text.split(',')[0] : null, ...(push.body.files.length > 0 ? files : [])].filter((name) => typeof name === 'string'))
}

/** Fields that the preset's reply rules read, and their copies elsewhere in the push. */
function keptForAnswer({ reply, typing }: Preset): Set<string> {
  const templates = reply.flatMap((rule) => [rule.tool, ...Object.values(rule.arguments), ...Object.values(rule.file?.arguments ?? {}), ...Object.values(rule.file?.uploadFields ?? {})])
  const all = [...templates, ...Object.values(typing?.arguments ?? {})]
  return new Set(all.filter((template) => template.startsWith('{') && !OPEN_TEMPLATES.includes(template)).map((template) => template.slice(1, -1)))
}

function reasonFor(path: string, kept: ReadonlySet<string>, preset: Preset): string {
  const [top = ''] = path.split(/[.[]/, 1)
  if (kept.has(path)) return 'kept for the answer, never shown to xAgent'
  if (FORBIDDEN_FIELDS.includes(path)) return 'must never stand in an IM payload (v2 §3); counted forbidden_field'
  if (WRAPPED.includes(path)) return 'the connector\'s wrapper around the words'
  if (path === 'raw_text') return 'empty: the message is files alone, or nothing'
  if (top === 'raw_message') return 'raw payload of the platform'
  if (FILE_KEYS.includes(top)) return 'the connector\'s own reference or address of the file, or a name that holds it; xAgent gets the gateway\'s'
  if (preset.identity.includes(path)) return 'only in the hash of message_id, or replaced'
  if (['event_kind', ...Object.keys(preset.userMessageWhen)].includes(path)) return 'decides whether it is a user\'s message'
  if (preset.conversation.some((names) => names.includes(path)) || preset.groupWhen.some((when) => Object.hasOwn(when, path))) return 'tells conversations and groups apart; v2 has no field for it'
  if (/^(reply|skill)\b|_tool_id$|skill_ids/.test(path)) return 'v1\'s way of making an agent answer; under v2 answers go by themselves'
  if (/_ref$|_token$/.test(path)) return 'a reference or token of the connector\'s own, never shown to xAgent'
  return 'v2 has no field for it'
}

/** Paths of all leaves, list positions left out, each once. */
function leaves(payload: JsonObject): Set<string> {
  const found = new Set<string>()
  const walk = (value: unknown, path: string): void => {
    if (Array.isArray(value) && value.some((item) => typeof item === 'object')) for (const item of value) walk(item, `${path}[]`)
    else if (isObject(value) && Object.keys(value).length > 0) for (const [name, inner] of Object.entries(value)) walk(inner, path === '' ? name : `${path}.${name}`)
    else found.add(path)
  }
  walk(payload, '')
  return found
}

const lastName = (path: string): string => path.split('.').at(-1)?.replaceAll('[]', '') ?? path
