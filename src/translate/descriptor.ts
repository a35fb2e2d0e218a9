/** A legacy Descriptor, of either schema → `xagent.connection/v2` with the gateway's ids (PROTOCOL "Connection Descriptor"). */
import type { ChannelId, ConnectorCardId, ConnectorId, ToolId } from '../protocol/ids.js'
import { IM_V2 } from '../protocol/im-v2.js'
import { isObject, type JsonObject } from '../protocol/packet.js'
import { DESCRIPTOR_SCHEMA } from '../protocol/version.js'

const STATUSES: readonly string[] = ['created', 'authenticating', 'connected', 'degraded', 'offline', 'expired', 'revoked', 'error']
const TOOL_STATUSES: readonly string[] = ['available', 'unavailable', 'denied_by_target', 'requires_reauth', 'not_supported']
const PERMISSIONS: readonly string[] = ['unknown', 'granted', 'denied', 'requires_reauth']

export interface DescriptorProjection {
  readonly cardId: ConnectorCardId
  readonly connectorId: ConnectorId
  readonly channelId: ChannelId
  /** Tools of the projected Card: no other is shown. */
  readonly tools: readonly ToolId[]
  /** Why the channel cannot be used though the connector may say otherwise; null = as the connector says. */
  readonly trouble: { readonly status: 'offline' | 'degraded'; readonly reason: string } | null
}

/** Projects a Descriptor; null as input (none seen yet) gives one that is `created`. */
export function projectDescriptor(legacy: JsonObject | null, projection: DescriptorProjection): JsonObject {
  const { trouble } = projection
  const said = statusOf(legacy)
  const status = trouble !== null && (trouble.status === 'offline' || said === 'connected') ? trouble.status : said
  return {
    schema: DESCRIPTOR_SCHEMA,
    connection: {
      connector_card_id: projection.cardId, connector_id: projection.connectorId, connector_channel_id: projection.channelId,
      target_type: 'im', profiles: [IM_V2], status,
    },
    target: targetOf(legacy, projection.cardId),
    tools: toolsOf(legacy, projection),
  }
}

/** The connection status that a Descriptor states; `created` when it states none that is known. */
export function statusOf(legacy: JsonObject | null): string {
  const connection = isObject(legacy?.['connection']) ? legacy['connection'] : {}
  const status = connection['status']
  return typeof status === 'string' && STATUSES.includes(status) ? status : 'created'
}

/** Whether it says that nobody is signed in; `offline` and `error` do not say so (PROTOCOL "Connection Descriptor"). */
export function isSignedOut(legacy: JsonObject): boolean {
  return ['created', 'expired', 'revoked'].includes(statusOf(legacy))
}

/**
 * Whether the account that one Descriptor showed has left the channel by the next: nobody is signed in any more, or a hint names
 * another account. A hint may be masked, so that equal ones prove nothing.
 */
export function accountLeft(before: JsonObject | null, after: JsonObject): boolean {
  if (before === null || isSignedOut(before)) return false
  if (isSignedOut(after)) return true
  const [one, other] = [hintOf(before), hintOf(after)]
  return one !== null && other !== null && one !== other
}

function hintOf(legacy: JsonObject): string | null {
  return text(isObject(legacy['target']) ? legacy['target']['account_hint'] : null)
}

function targetOf(legacy: JsonObject | null, cardId: ConnectorCardId): JsonObject {
  const target = isObject(legacy?.['target']) ? legacy['target'] : {}
  const provider = text(target['provider']) ?? cardId
  const label = text(target['label'])
  const hint = text(target['account_hint'])
  return {
    provider, ...(label !== null && { label }), display_name: text(target['display_name']) ?? label ?? provider, ...(hint !== null && { account_hint: hint }),
  }
}

function toolsOf(legacy: JsonObject | null, projection: DescriptorProjection): JsonObject[] {
  const list = Array.isArray(legacy?.['tools']) ? legacy['tools'].filter(isObject) : []
  const byId = new Map(list.map((tool) => [tool['tool_id'], tool]))
  return projection.tools.map((toolId) => {
    const tool = byId.get(toolId)
    const said = tool?.['status']
    const permission = tool?.['target_permission_state']
    const status = typeof said === 'string' && TOOL_STATUSES.includes(said) ? said : 'unavailable'
    const { trouble } = projection
    return {
      tool_id: toolId,
      status: trouble?.status === 'offline' ? 'unavailable' : status,
      ...(typeof permission === 'string' && PERMISSIONS.includes(permission) && { target_permission_state: permission }),
      ...(trouble !== null && { reason: trouble.reason }),
    }
  })
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}
