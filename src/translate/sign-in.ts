/** Sign-in answers normalised to 3.0 (DESIGN §3 Sign-in): listed fields and statuses only, ids of the gateway's own. */
import type { JsonObject } from '../protocol/packet.js'
import { scrubber } from '../protocol/redact.js'
import type { ChannelId } from '../protocol/ids.js'

const STATUSES: readonly string[] = ['pending', 'scanned', 'authenticated', 'expired', 'qr_refresh_required', 'failed', 'unauthenticated']
const CANCEL_STATUSES: readonly string[] = ['canceled', 'ignored', 'not_found']

/** Where a legacy answer's ids are replaced. */
export interface SignInIds {
  readonly channelId: ChannelId
  /** The gateway's own session id. */
  readonly sessionId: string
  readonly flowId: string | null
  /** The projected Descriptor, when the answer carries one. */
  readonly descriptor: JsonObject | null
}

/** `auth.start.ack` and `auth.status.ack`. An unlisted status becomes `failed`: xAgent would not know what to show. */
export function signInAck(payload: JsonObject, ids: SignInIds): JsonObject {
  const status = payload['status']
  return {
    connector_channel_id: ids.channelId,
    ...(ids.flowId !== null && { flow_id: ids.flowId }),
    auth_session_id: ids.sessionId,
    status: typeof status === 'string' && STATUSES.includes(status) ? status : 'failed',
    ...text('qr_code_text', payload),
    ...text('qr_code_image', payload),
    ...time('expires_at', payload),
    ...time('poll_interval_millis', payload),
    ...(typeof payload['message'] === 'string' && { message: withoutIds(payload)(payload['message']) }),
    ...(ids.descriptor !== null && { connection_descriptor: ids.descriptor }),
  }
}

/** `auth.cancel.ack`. */
export function cancelAck(payload: JsonObject, sessionId: string): JsonObject {
  const status = payload['status']
  const auth = payload['auth_status']
  return {
    auth_session_id: sessionId,
    status: typeof status === 'string' && CANCEL_STATUSES.includes(status) ? status : 'ignored',
    ...(typeof auth === 'string' && STATUSES.includes(auth) && { auth_status: auth }),
  }
}

/** A message may name the connector's own session and channel, which mean nothing to xAgent. */
function withoutIds(payload: JsonObject): ReturnType<typeof scrubber> {
  return scrubber([payload['auth_session_id'], payload['connector_channel_id']].filter((id) => typeof id === 'string'))
}

function text(key: string, payload: JsonObject): JsonObject {
  const value = payload[key]
  return typeof value === 'string' && value !== '' ? { [key]: value } : {}
}

function time(key: string, payload: JsonObject): JsonObject {
  const value = payload[key]
  return Number.isSafeInteger(value) && (value as number) >= 0 ? { [key]: value } : {}
}
