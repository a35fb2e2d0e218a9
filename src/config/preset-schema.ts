/** The keys of a preset file (docs/presets.md), and the same keys as overrides inside a connector's entry. */
import { z } from 'zod'
import { count, duration, size } from './units.js'

const name = z.string('must be a field name').min(1)
const value = z.union([z.string(), z.number()], 'must be a text or a number')
const condition = z.record(name, z.union([value.transform((one) => [one]), z.array(value)]), 'must be fields with the values that match')
const TEMPLATE = 'must be "{text}", "{field}" or a text without braces'
/** A template stands for a whole value: a brace anywhere else would be sent as it is. */
const template = z.string(TEMPLATE).regex(/^(\{[\w.]+\}|[^{}]+)$/, TEMPLATE)

const replyRule = z.strictObject({
  when: condition.default({}),
  tool: template,
  arguments: z.record(name, template).refine((args) => Object.values(args).filter((one) => one === '{text}').length === 1, 'must give exactly one argument the value "{text}"'),
  result: z.strictObject({
    sent_when: condition.default({}),
    proof: name.nullable().default(null),
    recipient: z.strictObject({ field: name, equals: name }).nullable().default(null),
  }).prefault({}),
  in_doubt: z.enum(['dead_letter', 'retry'], 'must be dead_letter or retry').default('dead_letter'),
  last_chat_only: z.boolean().default(false),
  file_tool: template.optional(),
  file_arguments: z.record(name, template)
    .refine((args) => Object.values(args).filter((one) => one === '{file_ref}').length === 1, 'must give exactly one argument the value "{file_ref}"')
    .default({ media_ref: '{file_ref}' }),
  upload_fields: z.record(name, template).default({}),
}).transform(({ when, tool, arguments: args, result, in_doubt: inDoubt, last_chat_only: lastChatOnly, file_tool: fileTool, file_arguments: fileArguments, upload_fields: uploadFields }) => ({
  when, tool, arguments: args, inDoubt, lastChatOnly, file: fileTool === undefined ? null : { tool: fileTool, arguments: fileArguments, uploadFields },
  result: { sentWhen: result.sent_when, proof: result.proof, recipient: result.recipient },
}))

/** Every preset key but the ones that make a file of it, all optional. */
const keys = {
  identity: z.array(name).min(1, 'must name at least one field').optional(),
  fields: z.strictObject({ time: z.array(name).optional(), sender: z.array(name).optional(), name: z.array(name).optional(), acceptable: z.array(name).optional() }).optional(),
  conversation: z.array(z.union([name.transform((one) => [one]), z.array(name).min(1)])).optional(),
  group_when: z.array(condition).optional(),
  user_message_when: condition.optional(),
  wrapper_text: z.boolean().optional(),
  strip_leading: z.array(z.string().min(1)).optional(),
  reorder_window: duration(0).optional(),
  reply: z.array(replyRule).optional(),
  default_target: replyRule.nullable().optional(),
  target_ttl: duration(1_000).optional(),
  text_limit: z.strictObject({ max: count(1), unit: z.enum(['code_points', 'utf16', 'bytes']) }).optional(),
  file_limit: z.strictObject({ max_bytes: size(), content: z.array(z.string().min(1)).optional() }).optional(),
  refused_file: z.enum(['reject', 'link']).optional(),
  outcomes: z.array(z.strictObject({ contains: z.string().min(1), class: z.enum(['temporary', 'permanent', 'auth', 'in_doubt'], 'must be temporary, permanent, auth or in_doubt') })).optional(),
  typing: z.strictObject({
    tool: template,
    arguments: z.record(name, template).refine((args) => Object.values(args).filter((one) => one === '{typing}').length === 1, 'must give exactly one argument the value "{typing}"'),
  }).nullable().optional(),
  hidden_tools: z.array(name).optional(),
  result_fields: z.array(name).optional(),
  while_closed: z.enum(['lost', 'queued', 'unknown'], 'must be lost, queued or unknown').optional(),
  pause_reading: z.enum(['safe', 'lossy'], 'must be safe or lossy').optional(),
  descriptor_check: z.union([z.literal('never'), duration(1_000)], 'must be never, or a duration like 1m').optional(),
  infer_reply: z.boolean().optional(),
}

export const presetOverridesSchema = z.strictObject(keys)
export const presetFileSchema = z.strictObject({
  name: z.string().regex(/^[a-z0-9-]{1,32}$/, 'must be 1 to 32 of a-z, 0-9 and -'),
  version: count(1),
  card_ids: z.array(name),
  ...keys,
})

export type PresetKeys = z.output<typeof presetOverridesSchema>
export type PresetFile = z.output<typeof presetFileSchema>
