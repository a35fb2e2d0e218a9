/** What happens on the xAgent listener and no route sees: one log line and one count each. */
import type { ListenerEvent } from '../xagent/listener-event.js'
import type { Logger } from './logger.js'
import type { Metrics } from './metrics.js'

/** An observer for `startXagentServer`. Nothing of a refused request but its address and the reason is logged. */
export function listenerLog(logger: Logger, metrics: Metrics): (event: ListenerEvent) => void {
  return (event) => {
    switch (event.kind) {
      case 'refused':
        metrics.known(event.route)?.linkRefused(event.reason)
        logger.warn({ route: event.route, remoteAddress: event.remoteAddress, reason: event.reason }, 'xAgent link refused')
        return
      case 'undecodable':
        metrics.known(event.route)?.filtered('outbound', 'undecodable')
        logger.debug({ route: event.route, link: event.link, bytes: event.bytes }, 'frame from xAgent is no packet')
        return
      case 'closed':
        metrics.known(event.route)?.linkRefused(event.reason)
        logger.warn({ route: event.route, link: event.link, reason: event.reason }, 'xAgent link closed by the gateway')
        return
      case 'failed':
        logger.error({ route: event.route, err: event.error }, 'a request or link failed because of a bug; the others go on')
    }
  }
}
