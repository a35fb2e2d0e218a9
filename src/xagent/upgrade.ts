/** Whether a request may become a link: subprotocol, key, origin and room (PROTOCOL "Who dials whom", DESIGN §8 limits). */
import type { BearerKeys } from '../ops/bearer-keys.js'
import { ERROR_CODES } from '../protocol/errors.js'
import { SUBPROTOCOL } from '../protocol/version.js'
import { refusal, unauthorized, type HttpAnswer } from './http-answer.js'
import type { UpgradeRefusal } from './listener-event.js'

export interface UpgradeFacts {
  readonly authorization: string
  readonly origin: string
  readonly host: string
  /** `Sec-WebSocket-Protocol`: empty when the client offers none. */
  readonly offeredProtocols: string
}

export type Room = 'free' | 'max_links' | 'links_per_ip' | 'shutting_down'

export type Admission =
  | { readonly admitted: true; readonly protocol: string }
  | { readonly admitted: false; readonly reason: UpgradeRefusal; readonly answer: HttpAnswer }

/** Decides about one upgrade request. A client that offers no subprotocol is taken; one that offers only others is not. */
export function admitUpgrade(facts: UpgradeFacts, keys: BearerKeys, room: Room): Admission {
  if (facts.origin !== '' && !isSameHost(facts.origin, facts.host)) {
    return refused('foreign_origin', refusal(403, 'foreign_origin', 'a page of another host must not open this socket'))
  }
  if (!keys.accepts(facts.authorization)) return refused('unauthorized', unauthorized())
  const offered = facts.offeredProtocols.split(',').map((name) => name.trim()).filter((name) => name !== '')
  if (offered.length > 0 && !offered.includes(SUBPROTOCOL)) {
    return refused('subprotocol', refusal(400, 'subprotocol_required', `the subprotocol is ${SUBPROTOCOL}`))
  }
  if (room !== 'free') return refused(room, refusal(503, room, room === 'shutting_down' ? ERROR_CODES.shutting_down : 'too many links', { 'retry-after': '5' }))
  return { admitted: true, protocol: offered.length > 0 ? SUBPROTOCOL : '' }
}

function refused(reason: UpgradeRefusal, answer: HttpAnswer): Admission {
  return { admitted: false, reason, answer }
}

/**
 * Browsers name the page that opens a socket; xAgent is no browser. Without this, any page that somebody visits could open
 * a link where the listener needs no key.
 */
function isSameHost(origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false
  const page = new URL(origin)
  const own = `${page.protocol}//${host}`
  return host !== '' && URL.canParse(own) && new URL(own).host === page.host
}
