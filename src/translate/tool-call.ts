/** Relayed tool calls of an agent (DESIGN §3 Skill): projected arguments in, listed result fields out. */
import { err, ok, wireError, type Result } from '../protocol/errors.js'
import type { ReplyAddress } from '../core/record.js'
import type { LegacyChannelId, ToolId } from '../protocol/ids.js'
import { isObject, nestsAtMost, type JsonObject } from '../protocol/packet.js'
import type { ProjectedTool } from './card.js'
import type { Preset } from './preset.js'
import { fileTools, isTemplate, textTools, type CardTools } from './reply-target.js'

const MAX_DEPTH = 16

/** Arguments for the connector: only those of the projected schema, the channel id replaced by the connector's own. */
export function legacyArguments(tool: ProjectedTool, args: unknown, channelId: LegacyChannelId): Result<JsonObject> {
  if (args !== undefined && args !== null && !isObject(args)) return err(wireError('invalid_packet', 'arguments must be an object'))
  if (!nestsAtMost(args, MAX_DEPTH)) return err(wireError('invalid_packet', `arguments must nest at most ${MAX_DEPTH} deep`))
  const given = args ?? {}
  const passed: Record<string, unknown> = {}
  for (const [north, legacy] of tool.arguments) {
    if (north !== 'connector_channel_id' && Object.hasOwn(given, north)) passed[legacy] = given[north]
  }
  passed['connector_channel_id'] = channelId
  return ok(passed)
}

/**
 * What a tool sends to a person: one that the preset's rules answer with; null = it sends nothing. Where pushes name the tool of
 * their answer, the Card's only tool that takes nothing but a text (or a file) sends too; several of them are `unclear`.
 */
export function sends(toolId: ToolId, preset: Preset, tools: CardTools, target: ReplyAddress | null): 'text' | 'file' | 'unclear' | null {
  const rules = preset.defaultTarget === null ? preset.reply : [...preset.reply, preset.defaultTarget]
  if (target?.tool === toolId || rules.some((rule) => rule.tool === toolId)) return 'text'
  if (target?.file?.tool === toolId || rules.some((rule) => rule.file?.tool === toolId)) return 'file'
  if (!preset.inferReply && !rules.some((rule) => isTemplate(rule.tool))) return null
  return senderAmong(textTools(tools), toolId, 'text') ?? senderAmong(fileTools(tools).map(({ tool }) => tool), toolId, 'file')
}

/** The only one of its kind sends; with several nothing says which. */
function senderAmong<Kind>(tools: readonly string[], toolId: ToolId, kind: Kind): Kind | 'unclear' | null {
  if (!tools.includes(toolId)) return null
  return tools.length === 1 ? kind : 'unclear'
}

/**
 * The agent's words, and everything that says to whom from the target: an agent cannot choose the person. What else it gave goes
 * with its own tool only; another one may understand it in another way.
 */
export function addressedArguments(toolId: ToolId, args: JsonObject, target: ReplyAddress): JsonObject {
  const { text, ...rest } = args
  return { ...(toolId === target.tool && rest), ...(text !== undefined && { [target.textArgument]: text }), ...target.arguments }
}

/** What an agent sees of a result: the preset's fields with plain values. */
export function relayedResult(result: unknown, fields: readonly string[]): JsonObject {
  if (!isObject(result)) return {}
  return Object.fromEntries(
    fields.filter((field) => Object.hasOwn(result, field) && ['string', 'number', 'boolean'].includes(typeof result[field])).map((field) => [field, result[field]]),
  )
}
