/** Answers of the HTTP side, as values, and the one place that writes them to a socket. */
import type { HttpResponse } from 'uWebSockets.js'

export interface HttpAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const STATUS_TEXT: Readonly<Record<number, string>> = {
  200: 'OK',
  204: 'No Content',
  206: 'Partial Content',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  411: 'Length Required',
  413: 'Content Too Large',
  416: 'Range Not Satisfiable',
  426: 'Upgrade Required',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
  507: 'Insufficient Storage',
}

/** A refusal: `{"error": code, "message": …}`, the shape that connectors use too. */
export function refusal(status: number, code: string, message?: string, headers: Readonly<Record<string, string>> = {}): HttpAnswer {
  const body = JSON.stringify(message === undefined ? { error: code } : { error: code, message })
  return { status, headers: { 'content-type': 'application/json', ...headers }, body }
}

/** Nothing but `unauthorized` is said: no hint at which key, or how close. */
export const unauthorized = (): HttpAnswer => refusal(401, 'unauthorized', undefined, { 'www-authenticate': 'Bearer' })

/**
 * Writes an answer; the response must not be used afterwards. A HEAD gets the headers alone, and its connection is closed:
 * the server would take a body for still owed.
 */
export function writeAnswer(response: HttpResponse, answer: HttpAnswer, isHead: boolean): void {
  writeHead(response, answer)
  if (answer.status === 204) {
    response.onAborted(() => undefined).endWithoutBody()
  } else if (isHead) {
    response.onAborted(() => undefined).endWithoutBody(Buffer.byteLength(answer.body), true)
  } else {
    response.end(answer.body)
  }
}

/** Status and headers alone. */
export function writeHead(response: HttpResponse, { status, headers }: Omit<HttpAnswer, 'body'>): void {
  response.writeStatus(`${status} ${STATUS_TEXT[status] ?? ''}`)
  response.writeHeader('x-content-type-options', 'nosniff')
  for (const [name, value] of Object.entries(headers)) {
    if (isHeaderValue(value)) response.writeHeader(name, value)
  }
}

/** Some values come from a connector's Skill: none may end the header and begin another one. */
function isHeaderValue(value: string): boolean {
  return /^[\x20-\x7e]*$/.test(value)
}
