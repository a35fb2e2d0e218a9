import t from 'tap'
import { createLogger } from '../../src/ops/logger.js'
import { listenerLog } from '../../src/ops/listener-log.js'
import { Metrics } from '../../src/ops/metrics.js'
import type { LinkId, RouteName } from '../../src/protocol/ids.js'

const route = 'telegram' as RouteName
const link = 'link-1' as LinkId

t.test('logs and counts what no route sees', async (t) => {
  const lines: Record<string, unknown>[] = []
  const log = createLogger({ level: 'debug', pretty: false, destination: { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) } })
  const metrics = new Metrics({ build: { version: '1' }, packetTypes: [] })
  t.teardown(() => metrics.close())
  metrics.route(route)
  const observe = listenerLog(log, metrics)
  observe({ kind: 'refused', route, remoteAddress: '192.0.2.7', reason: 'unauthorized' })
  observe({ kind: 'closed', route, link, reason: 'binary_frame' })
  observe({ kind: 'undecodable', route, link, bytes: 12 })
  observe({ kind: 'failed', route: null, error: new Error('invented bug') })
  t.match(lines, [
    { level: 'warn', route: 'telegram', remoteAddress: '192.0.2.7', reason: 'unauthorized' },
    { level: 'warn', link: 'link-1', reason: 'binary_frame' },
    { level: 'debug', bytes: 12 },
    { level: 'error', err: { message: 'invented bug' } },
  ])
  const text = await metrics.scrape()
  t.match(text, 'links_refused_total{connector="telegram",reason="unauthorized"} 1')
  t.match(text, 'links_refused_total{connector="telegram",reason="binary_frame"} 1')
  t.match(text, 'packets_filtered_total{connector="telegram",direction="outbound",reason="undecodable"} 1')
})

t.test('does not bring the series of a removed route back', async (t) => {
  const metrics = new Metrics({ build: { version: '1' }, packetTypes: [] })
  t.teardown(() => metrics.close())
  listenerLog(createLogger({ level: 'silent', pretty: false }), metrics)({ kind: 'closed', route, link, reason: 'hello_timeout' })
  t.notMatch(await metrics.scrape(), 'connector="telegram"')
})
