/**
 * A legacy Card → a Card that protocol 3.0 admits for `xagent.im.v2` (DESIGN §3): rewritten from whitelisted fields, never
 * copied. Texts that would make an agent reply by tool are replaced by ours.
 */
import { createHash } from 'node:crypto'
import { IM_V1 } from '../protocol/im-v1.js'
import { IM_V2 } from '../protocol/im-v2.js'
import type { ConnectorCardId, ProfileId, ToolId } from '../protocol/ids.js'
import { isObject, nestsAtMost, type JsonObject } from '../protocol/packet.js'
import { CARD_SCHEMA, PROTOCOL_VERSION } from '../protocol/version.js'
import type { Preset } from './preset.js'
import { generatedSkill, skillName, type Skill } from './skill.js'

/** A tool as an agent sees it, and how its arguments are named on the legacy side. */
export interface ProjectedTool {
  readonly toolId: ToolId
  readonly title: string
  readonly description: string
  readonly inputSchema: JsonObject
  /** Northbound argument name → legacy argument name; only these pass. */
  readonly arguments: ReadonlyMap<string, string>
}

export interface ProjectedCard {
  readonly cardId: ConnectorCardId
  /** What the connector is spoken to in: `xagent.im.v2` where its Card lists it (then it is relayed), else `xagent.im.v1`. */
  readonly spoken: ProfileId
  readonly version: string
  readonly card: JsonObject
  readonly skill: Skill
  readonly tools: ReadonlyMap<ToolId, ProjectedTool>
}

export interface CardProjection {
  readonly preset: Preset
  /** Build facts of the gateway (PROTOCOL `build`); `build_time` required. */
  readonly build: JsonObject
  readonly apiKeyRequired: boolean
  /** Whether a file can be uploaded through the gateway; without it, tools that need one cannot be called and are hidden. */
  readonly files: boolean
  /** A Skill from the configuration instead of the generated one. */
  readonly skill: Skill | null
}

/** Arguments that only v1's way of replying could fill, or that would let a model choose the recipient (v1 §4). */
const REPLY_ARGUMENTS: readonly string[] = ['reply_ref', 'reply_token', 'recipient_ref', 'context_token']
const FILE_ARGUMENTS: ReadonlyMap<string, string> = new Map([['media_ref', 'file_ref'], ['file_ref', 'file_ref']])
/** What shows that a text was written for v1: such texts are replaced. */
const V1_WORDS: readonly string[] = ['/media/', '/files/', 'media_ref', 'reply', 'skill', 'im-connector', 'X-XAgent']
/** Keywords of a schema that explain and decide nothing. */
const ANNOTATIONS: readonly string[] = ['description', 'title', '$comment', 'default', 'examples']
const MAX_SCHEMA_DEPTH = 12

/** Projects a Card. Null when it names no card id: nothing can be served under it. */
export function projectCard(legacy: JsonObject, projection: CardProjection): ProjectedCard | null {
  const cardId = text(legacy['connector_card_id'])
  if (cardId === null) return null
  const connector = isObject(legacy['connector']) ? legacy['connector'] : {}
  const name = text(connector['name']) ?? cardId
  const spoken = spokenProfile(legacy)
  const tools = projectTools(legacy, projection, cardId, spoken)
  const skill = projection.skill ?? generatedSkill(cardId, name, tools)
  const supports = isObject(legacy['supports']) ? legacy['supports'] : {}
  const body = {
    connector_card_id: cardId,
    supports: { user_channel_mode: 'single', target_types: ['im'], ...targetsOf(supports), profiles: [IM_V2] },
    tools: tools.map((tool) => toolEntry(tool, cardId)),
    ...authFlows(legacy),
    ...loginFlow(legacy),
    security: { api_key_required: projection.apiKeyRequired, ...dataClasses(legacy) },
  }
  const suffix = createHash('sha256').update(JSON.stringify(body)).update(skill.markdown).digest('hex').slice(0, 8)
  const version = `${text(connector['version']) ?? '0'}+gateway.${suffix}`
  return {
    cardId: cardId as ConnectorCardId,
    spoken,
    version,
    card: {
      schema: CARD_SCHEMA, protocol_version: PROTOCOL_VERSION, build: projection.build,
      connector: { name, version, ...optional('vendor', connector['vendor']), ...optional('description', connector['description']) }, ...body,
    },
    skill,
    tools: new Map(tools.map((tool) => [tool.toolId, tool])),
  }
}

function spokenProfile(legacy: JsonObject): ProfileId {
  const supports = isObject(legacy['supports']) ? legacy['supports'] : {}
  return Array.isArray(supports['profiles']) && supports['profiles'].includes(IM_V2) ? IM_V2 : IM_V1
}

function projectTools(legacy: JsonObject, projection: CardProjection, cardId: string, spoken: ProfileId): ProjectedTool[] {
  const list = Array.isArray(legacy['tools']) ? legacy['tools'] : []
  const seen = new Set<string>()
  return list.flatMap((tool: unknown) => {
    const projected = !isObject(tool) ? null : spoken === IM_V2 ? relayedTool(tool, projection) : projectTool(tool, projection, cardId)
    if (projected === null || seen.has(projected.toolId)) return []
    seen.add(projected.toolId)
    return [projected]
  })
}

function projectTool(tool: JsonObject, projection: CardProjection, cardId: string): ProjectedTool | null {
  const toolId = usableId(tool, projection.preset)
  if (toolId === null) return null
  const schema = isObject(tool['input_schema']) ? tool['input_schema'] : {}
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const required = Array.isArray(schema['required']) ? schema['required'].filter((name) => typeof name === 'string') : []
  if (!nestsAtMost(schema, MAX_SCHEMA_DEPTH) || required.some((name) => REPLY_ARGUMENTS.includes(name))) return null
  const takesFile = Object.keys(properties).some((name) => FILE_ARGUMENTS.has(name))
  if (takesFile && !projection.files) return null
  const names = new Map<string, string>()
  for (const name of Object.keys(properties)) {
    if (!REPLY_ARGUMENTS.includes(name) && name !== 'connector_card_id') names.set(FILE_ARGUMENTS.get(name) ?? name, name)
  }
  names.set('connector_channel_id', 'connector_channel_id')
  const said = ownWords(tool['description'])
  const sends = names.has('text') || takesFile
  return {
    toolId,
    title: ownWords(tool['title']) ?? toolId,
    description: sends || said === null ? sendDescription(sends, cardId) : said,
    inputSchema: inputSchema(properties, required, names),
    arguments: names,
  }
}

/** A tool that was written for v2: its own words, and all its arguments under their own names. */
function relayedTool(tool: JsonObject, projection: CardProjection): ProjectedTool | null {
  const toolId = usableId(tool, projection.preset)
  const schema = isObject(tool['input_schema']) ? tool['input_schema'] : {}
  if (toolId === null || !nestsAtMost(schema, MAX_SCHEMA_DEPTH)) return null
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const { connector_card_id: _never, ...kept } = properties
  const required = Array.isArray(schema['required']) ? schema['required'].filter((name) => typeof name === 'string' && Object.hasOwn(kept, name)) : []
  return {
    toolId,
    title: text(tool['title']) ?? toolId,
    description: text(tool['description']) ?? toolId,
    inputSchema: {
      ...schema, type: 'object', properties: { ...kept, connector_channel_id: { type: 'string' } },
      required: [...new Set([...required, 'connector_channel_id'])],
    },
    arguments: new Map([...Object.keys(kept), 'connector_channel_id'].map((name) => [name, name])),
  }
}

function usableId(tool: JsonObject, preset: Preset): ToolId | null {
  const toolId = text(tool['tool_id'])
  return toolId !== null && /^[A-Za-z0-9_.-]{1,256}$/.test(toolId) && !preset.hiddenTools.includes(toolId) ? (toolId as ToolId) : null
}

function sendDescription(sends: boolean, cardId: string): string {
  if (!sends) return `A tool of the connector ${cardId}.`
  return 'Sends a message to the connected chat. Only for messages that the person did not just ask for: answers are delivered automatically.'
}

function inputSchema(properties: JsonObject, required: readonly string[], names: ReadonlyMap<string, string>): JsonObject {
  const projected: Record<string, unknown> = {}
  for (const [north, legacy] of names) {
    projected[north] = north === 'connector_channel_id' ? { type: 'string' } : withoutV1Texts(properties[legacy])
  }
  const needed = [...names].filter(([north, legacy]) => north === 'connector_channel_id' || required.includes(legacy)).map(([north]) => north)
  return { type: 'object', properties: projected, required: needed, additionalProperties: false }
}

/** A JSON schema without annotations that were written for v1. Its depth is checked before. `named`: its keys are names. */
function withoutV1Texts(schema: unknown, named = false): unknown {
  if (Array.isArray(schema)) return schema.map((item) => withoutV1Texts(item))
  if (!isObject(schema)) return schema
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key, value]) => named || !ANNOTATIONS.includes(key) || !isV1Annotation(key, value))
      .map(([key, value]) => [key, withoutV1Texts(value, !named && key === 'properties')]),
  )
}

function isV1Annotation(key: string, value: unknown): boolean {
  if (typeof value === 'string') return speaksV1(value)
  return key === 'description' || speaksV1(JSON.stringify(value))
}

function toolEntry(tool: ProjectedTool, cardId: string): JsonObject {
  return {
    tool_id: tool.toolId, profile: IM_V2, title: tool.title, description: tool.description, related_skill_ids: [skillName(cardId)], input_schema: tool.inputSchema,
  }
}

function targetsOf(supports: JsonObject): { targets?: JsonObject[] } {
  const list = Array.isArray(supports['targets']) ? supports['targets'].filter(isObject) : []
  const targets = list.flatMap((target) => {
    const provider = text(target['provider'])
    if (provider === null) return []
    return [{ target_type: 'im', provider, label: text(target['label']) ?? provider, ...optional('description', target['description']) }]
  })
  return targets.length > 0 ? { targets } : {}
}

function authFlows(legacy: JsonObject): { auth_flows?: JsonObject[] } {
  const list = Array.isArray(legacy['auth_flows']) ? legacy['auth_flows'].filter(isObject) : []
  const flows = list.flatMap((flow) => {
    const id = text(flow['id'])
    const type = flow['type']
    if (id === null || (type !== 'qr_login' && type !== 'form')) return []
    const fields = (Array.isArray(flow['fields']) ? flow['fields'].filter(isObject) : []).map(authField)
    if (type === 'form' && fields.length === 0) return []
    return [{ id, target_type: 'im', type, ...optional('title', flow['title']), ...optional('description', flow['description']), ...(fields.length > 0 && { fields }) }]
  })
  return flows.length > 0 ? { auth_flows: flows } : {}
}

function authField(field: JsonObject): JsonObject {
  const secret = field['secret'] === true
  return {
    name: text(field['name']) ?? 'value', label: text(field['label']) ?? text(field['name']) ?? 'value',
    input_type: field['input_type'] === 'password' ? 'password' : 'text',
    ...(typeof field['required'] === 'boolean' && { required: field['required'] }),
    ...optional('placeholder', field['placeholder']), ...optional('help_text', field['help_text']),
    ...(secret && { secret }), ...(secret ? {} : optional('default_value', field['default_value'])),
  }
}

function loginFlow(legacy: JsonObject): { ui?: JsonObject } {
  const ui = isObject(legacy['ui']) ? legacy['ui'] : {}
  const flow = isObject(ui['login_flow']) ? ui['login_flow'] : null
  if (flow === null) return {}
  const steps = (Array.isArray(flow['steps']) ? flow['steps'].filter(isObject) : []).flatMap((step) => {
    const type = text(step['type'])
    return type === null ? [] : [{ type, ...optional('request_type', step['request_type']), ...optional('response_type', step['response_type']) }]
  })
  return { ui: { login_flow: { ...optional('flow_id', flow['flow_id']), steps } } }
}

function dataClasses(legacy: JsonObject): { data_classes?: string[] } {
  const security = isObject(legacy['security']) ? legacy['security'] : {}
  const classes = Array.isArray(security['data_classes']) ? security['data_classes'].filter((name) => typeof name === 'string') : []
  return classes.length > 0 ? { data_classes: classes } : {}
}

function speaksV1(words: string): boolean {
  const lower = words.toLowerCase()
  return V1_WORDS.some((word) => lower.includes(word.toLowerCase()))
}

/** A text of the connector's that was not written for v1. */
function ownWords(value: unknown): string | null {
  const words = text(value)
  return words === null || speaksV1(words) ? null : words
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

function optional(key: string, value: unknown): JsonObject {
  const words = text(value)
  return words === null ? {} : { [key]: words }
}
