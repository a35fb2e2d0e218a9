/** The HTTP endpoints of a Connector Server (PROTOCOL "Who dials whom"): one request in, one answer out. */
import type { BearerKeys } from '../ops/bearer-keys.js'
import { ERROR_CODES } from '../protocol/errors.js'
import type { RouteName } from '../protocol/ids.js'
import { SUBPROTOCOL } from '../protocol/version.js'
import { endpointOf, nameIn, type Endpoint } from './endpoint.js'
import { refusal, unauthorized, type HttpAnswer } from './http-answer.js'
import type { HttpBody, NorthRoute } from './port.js'

export type RouteLookup = (name: RouteName) => NorthRoute | undefined

export interface HttpRequestFacts {
  /** Upper case. */
  readonly method: string
  readonly path: string
  readonly authorization: string
}

/** Seconds after which asking again makes sense: the Card is fetched anew every few seconds while it is missing. */
const RETRY_AFTER_SECONDS = '5'

/** Answers every request that is not a WebSocket upgrade. */
export function answerHttp(request: HttpRequestFacts, lookup: RouteLookup, keys: BearerKeys): HttpAnswer {
  const endpoint = endpointOf(request.path)
  const name = endpoint === null ? nameIn(request.path) : endpoint.name
  const route = name === null ? undefined : lookup(name)
  if (route === undefined && !(endpoint !== null && endpoint.name === null)) return refusal(404, 'unknown_connector', 'no connector of this name is served here')
  if (endpoint === null) return refusal(404, 'not_found', 'a Base URL serves connector-card.json, skill.md, health, ws and files')
  if (!endpoint.methods.includes(request.method)) return refusal(405, 'method_not_allowed', undefined, { allow: endpoint.methods.join(', ') })
  if (endpoint.needsKey && !keys.accepts(request.authorization)) return unauthorized()
  return answerEndpoint(endpoint, route)
}

function answerEndpoint(endpoint: Endpoint, route: NorthRoute | undefined): HttpAnswer {
  switch (endpoint.kind) {
    case 'upload':
    case 'file':
      return refusal(503, 'not_yet', ERROR_CODES.files_not_supported)
    case 'ws':
      return refusal(426, 'upgrade_required', `this is the WebSocket endpoint, subprotocol ${SUBPROTOCOL}`, { upgrade: 'websocket' })
    case 'card':
    case 'skill':
    case 'health':
      return route === undefined ? refusal(404, 'unknown_connector') : answerBody(endpoint.kind, route)
  }
}

function answerBody(kind: 'card' | 'skill' | 'health', route: NorthRoute): HttpAnswer {
  if (kind !== 'skill') return fromBody(route[kind]())
  const skill = route.skill()
  return fromBody(skill, skill.headers)
}

function fromBody(body: HttpBody, headers: Readonly<Record<string, string>> = {}): HttpAnswer {
  switch (body.status) {
    case 200:
      return { status: 200, headers: { 'content-type': body.contentType, ...headers }, body: body.body }
    case 204:
      return { status: 204, headers, body: '' }
    case 404:
      return refusal(404, 'not_found', body.reason)
    case 503:
      return refusal(503, 'connector_unavailable', body.reason, { 'retry-after': RETRY_AFTER_SECONDS })
  }
}
