/** How the two dialects of the legacy side write Card, health, Descriptor and file lists. Kinds are recorded in 1.0. */
import type { JsonObject } from '../protocol/packet.js'
import type { ConnectorKind } from './connector-kind.js'
import type { SimChannel } from './connector-memory.js'
import { objectField, textField } from './wire-packet.js'

export type Dialect = '1.0' | '3.0'

const BUILD = { version: '0.0.4', git_tag: 'v0.0.4', git_rev: '0000000', build_time: '2026-01-01T00:00:00Z' } as const

export function cardId(kind: ConnectorKind): string {
  return textField(kind.card, 'connector_card_id')
}

export function cardOf(kind: ConnectorKind, dialect: Dialect): JsonObject {
  return dialect === '1.0' ? kind.card : { ...kind.card, protocol_version: '3.0', build: BUILD }
}

export function healthOf(kind: ConnectorKind, dialect: Dialect): JsonObject {
  return {
    connector_card_id: cardId(kind),
    connector_card_version: textField(objectField(kind.card, 'connector'), 'version'),
    status: 'ok',
    ...(dialect === '3.0' && { protocol_version: '3.0', build: BUILD }),
  }
}

export function descriptorOf(kind: ConnectorKind, dialect: Dialect, channel: SimChannel, connectorId: string): JsonObject {
  const { account } = channel
  const profile = 'xagent.im.v1'
  return {
    schema: dialect === '1.0' ? 'xagent.connection/v1' : 'xagent.connection/v2',
    connection: {
      connector_card_id: cardId(kind),
      connector_id: connectorId,
      connector_channel_id: channel.id,
      target_type: 'im',
      ...(dialect === '1.0' ? { profile } : { profiles: [profile] }),
      status: account === null ? 'created' : 'connected',
    },
    target: {
      ...kind.target,
      display_name: account?.displayName ?? 'not bound',
      ...(account !== null && { account_hint: account.accountHint }),
    },
    ...toolStates(kind, dialect, account !== null),
  }
}

/** A push in the dialect: 3.0 lists `files` with `file_ref` where 1.0 lists `media` with `media_ref`. */
export function pushIn(dialect: Dialect, payload: JsonObject): JsonObject {
  const { media, ...rest } = payload
  if (dialect === '1.0' || !Array.isArray(media)) return payload
  return { ...rest, files: media.map((item: JsonObject) => fileItem(item)) }
}

function fileItem(item: JsonObject): JsonObject {
  const { media_ref, media_type, type, content_type, mime_type, ...rest } = item
  return {
    ...rest,
    file_ref: media_ref,
    type: type ?? media_type,
    mime_type: mime_type ?? content_type,
    download_url: `/files/refs/${String(media_ref)}`,
  }
}

function toolStates(kind: ConnectorKind, dialect: Dialect, bound: boolean): JsonObject {
  if (!bound && dialect === '1.0') return {}
  const listed = Array.isArray(kind.card['tools']) ? (kind.card['tools'] as JsonObject[]) : []
  return {
    tools: listed.map((tool) => ({
      tool_id: tool['tool_id'],
      status: bound ? 'available' : 'requires_reauth',
      target_permission_state: bound ? 'granted' : 'requires_reauth',
    })),
  }
}
