/** Where an answer to a push goes: the preset's reply rules applied to the push (DESIGN §4 Turns, §8 `reply`). */
import type { FileTarget, ReplyAddress, TypingTarget } from '../core/record.js'
import type { ConversationKey, ToolId } from '../protocol/ids.js'
import { fieldText } from '../protocol/im-v1.js'
import { isObject, type JsonObject } from '../protocol/packet.js'
import { holds } from './conversation.js'
import type { Preset, ReplyRule } from './preset.js'

/** Tool id → names of its required arguments and of all arguments, from the legacy Card. */
export type CardTools = ReadonlyMap<string, { readonly required: readonly string[]; readonly declared: readonly string[] }>

const NO_PUSH: JsonObject = {}

/**
 * The target of an answer to this push: the first rule whose condition holds and whose templates can all be filled.
 * Null when no rule fits, so that a final is refused rather than sent to a guess.
 */
export function replyTarget(payload: JsonObject, preset: Preset, tools: CardTools, conversation: ConversationKey | null, now: number): ReplyAddress | null {
  for (const rule of preset.reply) {
    const target = holds(rule.when, payload) ? fill(rule, payload, preset, tools, conversation, now) : null
    if (target !== null) return target
  }
  return preset.inferReply ? inferred(preset, tools, conversation, now) : null
}

/** The target of a final that answers nobody: the preset's default, or null for `no_reply_target` (DESIGN §4 rule 7). */
export function defaultTarget(preset: Preset, tools: CardTools, now: number): ReplyAddress | null {
  if (preset.defaultTarget !== null) return fill(preset.defaultTarget, NO_PUSH, preset, tools, null, now)
  return preset.inferReply ? inferred(preset, tools, null, now) : null
}

/** Tools of a legacy Card with their argument names; unusable entries are left out. */
export function cardTools(card: JsonObject | null): CardTools {
  const tools = new Map<string, { required: readonly string[]; declared: readonly string[] }>()
  const list = card?.['tools']
  for (const tool of Array.isArray(list) ? list : []) {
    if (!isObject(tool) || typeof tool['tool_id'] !== 'string') continue
    const schema = isObject(tool['input_schema']) ? tool['input_schema'] : {}
    const required = Array.isArray(schema['required']) ? schema['required'].filter((name) => typeof name === 'string') : []
    const declared = isObject(schema['properties']) ? Object.keys(schema['properties']) : []
    tools.set(tool['tool_id'], { required, declared })
  }
  return tools
}

function fill(rule: ReplyRule, payload: JsonObject, preset: Preset, tools: CardTools, conversation: ConversationKey | null, now: number): ReplyAddress | null {
  const tool = fillTemplate(rule.tool, payload)
  if (tool === null || (tools.size > 0 && !tools.has(tool))) return null
  const filled = fillArguments(rule.arguments, '{text}', payload)
  if (filled === null) return null
  const recipient = rule.result.recipient
  const expected = recipient === null ? null : fieldText(payload, recipient.equals)
  return {
    conversation,
    tool: tool as ToolId,
    arguments: filled.values,
    textArgument: filled.open,
    proof: {
      sentWhen: rule.result.sentWhen,
      field: rule.result.proof,
      recipient: recipient !== null && expected !== null && expected !== '' ? { field: recipient.field, value: expected } : null,
    },
    inDoubt: rule.inDoubt,
    takenAt: now,
    expiresAt: now + preset.targetTtlMs,
    perMessage: Object.keys(filled.values).length > 0,
    lastChatOnly: rule.lastChatOnly,
    file: rule.file === null ? inferredFile(preset, tools) : fileTarget(rule.file, payload, tools),
    typing: typingTarget(payload, preset),
  }
}

function typingTarget(payload: JsonObject, { typing }: Preset): TypingTarget | null {
  const tool = typing === null ? null : fillTemplate(typing.tool, payload)
  const filled = typing === null ? null : fillArguments(typing.arguments, '{typing}', payload)
  return tool === null || filled === null ? null : { tool: tool as ToolId, arguments: filled.values, flag: filled.open }
}

function fillAll(templates: Readonly<Record<string, string>>, payload: JsonObject): Record<string, string> | null {
  const values: Record<string, string> = {}
  for (const [name, template] of Object.entries(templates)) {
    const value = fillTemplate(template, payload)
    if (value === null || value === '') return null
    values[name] = value
  }
  return values
}

/** Fills every template but the one that stays open for the text or the flag. Null when a field is absent or empty. */
function fillArguments(templates: Readonly<Record<string, string>>, openTemplate: string, payload: JsonObject): { values: Record<string, string>; open: string } | null {
  const values: Record<string, string> = {}
  let open: string | null = null
  for (const [name, template] of Object.entries(templates)) {
    if (template === openTemplate) {
      open = name
      continue
    }
    const value = fillTemplate(template, payload)
    if (value === null || value === '') return null
    values[name] = value
  }
  return open === null ? null : { values, open }
}

/**
 * `generic`: the Card's only tool that needs nothing but the channel and a text sends it; with two of them nothing says
 * which, and there is no target.
 */
function inferred(preset: Preset, tools: CardTools, conversation: ConversationKey | null, now: number): ReplyAddress | null {
  const [only, ...more] = textTools(tools)
  if (only === undefined || more.length > 0) return null
  return {
    conversation,
    tool: only as ToolId,
    arguments: {},
    textArgument: 'text',
    proof: { sentWhen: {}, field: null, recipient: null },
    inDoubt: 'dead_letter',
    takenAt: now,
    expiresAt: now + preset.targetTtlMs,
    perMessage: false,
    lastChatOnly: false,
    file: inferredFile(preset, tools),
    typing: null,
  }
}

/** Null where the push lacks what the rule needs, or the Card lacks the tool: then files are refused, not guessed. */
function fileTarget(file: NonNullable<ReplyRule['file']>, payload: JsonObject, tools: CardTools): FileTarget | null {
  const tool = fillTemplate(file.tool, payload)
  const filled = fillArguments(file.arguments, '{file_ref}', payload)
  const fields = fillAll(file.uploadFields, payload)
  if (tool === null || filled === null || fields === null || (tools.size > 0 && !tools.has(tool))) return null
  return { tool: tool as ToolId, arguments: filled.values, refArgument: filled.open, uploadFields: fields }
}

/** `generic`: the Card's only tool that needs nothing but the channel and a file. */
function inferredFile(preset: Preset, tools: CardTools): FileTarget | null {
  if (!preset.inferReply) return null
  const [only, ...more] = fileTools(tools)
  return only === undefined || more.length > 0 ? null : { tool: only.tool as ToolId, arguments: {}, refArgument: only.ref, uploadFields: {} }
}

/** Tools of the Card that need nothing but the channel and a text: what `generic` can infer a reply tool from. */
export function textTools(tools: CardTools): string[] {
  return [...tools].filter(([, { required }]) => required.includes('text') && required.every((name) => name === 'text' || name === 'connector_channel_id')).map(([tool]) => tool)
}

/** Tools of the Card that need nothing but the channel and a file, with the name of the file's argument. */
export function fileTools(tools: CardTools): { readonly tool: string; readonly ref: string }[] {
  return [...tools].flatMap(([tool, { required }]) => {
    const refs = required.filter((name) => name === 'media_ref' || name === 'file_ref')
    const [ref] = refs
    return ref !== undefined && refs.length === 1 && required.every((name) => name === ref || name === 'connector_channel_id') ? [{ tool, ref }] : []
  })
}

/** Whether it takes its value from the push. */
export const isTemplate = (template: string): boolean => template.startsWith('{') && template.endsWith('}')

/** Fills "{field}" or "{reply.field}"; a template without braces stands for itself. Null when the field is absent. */
function fillTemplate(template: string, payload: JsonObject): string | null {
  if (!isTemplate(template)) return template
  return fieldText(payload, template.slice(1, -1))
}
