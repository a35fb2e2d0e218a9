/** The HTTP endpoints of a Connector Server (PROTOCOL "Who dials whom"): a request's facts in, an answer or a file's way out. */
import type { BearerKeys } from '../ops/bearer-keys.js'
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

/** What is to be done with a request. `route` of a download: whose name the path has; null = none, which a resolver may have cut off. */
export type HttpOutcome =
  | { readonly kind: 'answer'; readonly answer: HttpAnswer }
  | { readonly kind: 'upload'; readonly route: NorthRoute }
  | { readonly kind: 'download'; readonly route: RouteName | null }

/** Seconds after which asking again makes sense: the Card is fetched anew every few seconds while it is missing. */
const RETRY_AFTER_SECONDS = '5'

/** Decides about every request that is not a WebSocket upgrade. */
export function answerHttp(request: HttpRequestFacts, lookup: RouteLookup, keys: BearerKeys): HttpOutcome {
  const endpoint = endpointOf(request.path)
  const name = endpoint === null ? nameIn(request.path) : endpoint.name
  const route = name === null ? undefined : lookup(name)
  if (route === undefined && !(endpoint !== null && endpoint.name === null)) return answered(refusal(404, 'unknown_connector', 'no connector of this name is served here'))
  if (endpoint === null) return answered(refusal(404, 'not_found', 'a Base URL serves connector-card.json, skill.md, health, ws and files'))
  if (!endpoint.methods.includes(request.method)) return answered(refusal(405, 'method_not_allowed', undefined, { allow: endpoint.methods.join(', ') }))
  if (endpoint.needsKey && !keys.accepts(request.authorization)) return answered(unauthorized())
  return outcomeAt(endpoint, route)
}

function outcomeAt(endpoint: Endpoint, route: NorthRoute | undefined): HttpOutcome {
  if (endpoint.kind === 'file') return { kind: 'download', route: endpoint.name }
  if (route === undefined) return answered(refusal(404, 'unknown_connector'))
  switch (endpoint.kind) {
    case 'upload':
      return { kind: 'upload', route }
    case 'ws':
      return answered(refusal(426, 'upgrade_required', `this is the WebSocket endpoint, subprotocol ${SUBPROTOCOL}`, { upgrade: 'websocket' }))
    case 'card':
    case 'skill':
    case 'health':
      return answered(answerBody(endpoint.kind, route))
  }
}

const answered = (answer: HttpAnswer): HttpOutcome => ({ kind: 'answer', answer })

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
