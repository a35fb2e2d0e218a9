/** Preset files, and which preset a connector gets (DESIGN §2: a connector's dialect is data). */
import { ConfigError } from '../protocol/errors.js'
import type { Preset } from '../translate/preset.js'
import { presetFileSchema, type PresetKeys } from './preset-schema.js'
import { problemLines, problemsOf, readYaml } from './yaml-problems.js'

const DAY_MS = 86_400_000

/** What a preset means where it says nothing. */
const DEFAULTS: Omit<Preset, 'name' | 'version' | 'cardIds'> = {
  identity: ['message_id'],
  fields: { time: ['create_time_ms', 'received_at'], sender: ['sender_id'], name: ['sender_name', 'display_name'], acceptable: ['chat_id', 'sender_id'] },
  conversation: [],
  groupWhen: [],
  userMessageWhen: {},
  wrapperText: false,
  stripLeading: [],
  reorderWindowMs: 0,
  reply: [],
  defaultTarget: null,
  targetTtlMs: DAY_MS,
  textLimit: { max: 4_000, unit: 'code_points' },
  fileLimit: { maxBytes: Infinity, content: [] },
  refusedFile: 'reject',
  outcomes: [],
  typing: null,
  hiddenTools: [],
  resultFields: ['status'],
  whileClosed: 'unknown',
  pauseReading: 'lossy',
  descriptorCheckMs: null,
  inferReply: false,
}

/** Reads one preset file. Throws ConfigError with every problem. */
export function parsePreset(file: string, text: string): Preset {
  const yaml = readYaml(file, text)
  if (yaml.problems.length > 0) throw new ConfigError(yaml.problems)
  const parsed = presetFileSchema.safeParse(yaml.data)
  if (!parsed.success) throw new ConfigError(problemLines(file, yaml, problemsOf(presetFileSchema, yaml.data, parsed.error.issues)))
  const { name, version, card_ids: cardIds, ...keys } = parsed.data
  return withKeys({ ...DEFAULTS, name, version, cardIds }, keys)
}

/** The preset of a connector: the named one, else the one for its Card, else `generic`; its own keys over it. */
export function choosePreset(presets: ReadonlyMap<string, Preset>, cardId: string | null, connector: { readonly preset: string; readonly presetOverrides: PresetKeys }): Preset {
  const byCard = [...presets.values()].find((preset) => cardId !== null && preset.cardIds.includes(cardId))
  const chosen = connector.preset === 'auto' ? (byCard ?? presets.get('generic')) : presets.get(connector.preset)
  if (chosen === undefined) throw new ConfigError([`preset: there is no preset "${connector.preset}"; there are ${[...presets.keys()].join(', ')}`])
  return withKeys(chosen, connector.presetOverrides)
}

function withKeys(preset: Preset, keys: PresetKeys): Preset {
  const said = {
    identity: keys.identity,
    fields: keys.fields === undefined ? undefined : { ...preset.fields, ...withoutUndefined(keys.fields) },
    conversation: keys.conversation,
    groupWhen: keys.group_when,
    userMessageWhen: keys.user_message_when,
    wrapperText: keys.wrapper_text,
    stripLeading: keys.strip_leading,
    reorderWindowMs: keys.reorder_window,
    reply: keys.reply,
    defaultTarget: keys.default_target,
    targetTtlMs: keys.target_ttl,
    textLimit: keys.text_limit,
    fileLimit: keys.file_limit === undefined ? undefined : { maxBytes: keys.file_limit.max_bytes, content: keys.file_limit.content ?? [] },
    refusedFile: keys.refused_file,
    outcomes: keys.outcomes,
    typing: keys.typing,
    hiddenTools: keys.hidden_tools,
    resultFields: keys.result_fields,
    whileClosed: keys.while_closed,
    pauseReading: keys.pause_reading,
    descriptorCheckMs: keys.descriptor_check === 'never' ? null : keys.descriptor_check,
    inferReply: keys.infer_reply,
  } satisfies { [Key in keyof Omit<Preset, 'name' | 'version' | 'cardIds'>]: Preset[Key] | undefined }
  return { ...preset, ...withoutUndefined(said) }
}

function withoutUndefined<T extends object>(value: T): { [Key in keyof T]: Exclude<T[Key], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as { [Key in keyof T]: Exclude<T[Key], undefined> }
}
