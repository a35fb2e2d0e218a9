import t, { type Test } from 'tap'
import type { Ended } from '../../src/core/effect.js'
import { INBOUND_OUTCOMES, OUTBOUND_OUTCOMES } from '../../src/core/outcome.js'
import { readHelloAck, readOpenAck } from '../../src/legacy/dialect.js'
import { readCard, readHealth } from '../../src/legacy/legacy-card.js'
import { Metrics } from '../../src/ops/metrics.js'
import type { RouteSnapshot } from '../../src/ops/route-metrics.js'
import type { ConnectorCardId, MessageId, PacketId, RouteName } from '../../src/protocol/ids.js'

const ROUTE = 'telegram' as RouteName

function started(t: Test): Metrics {
  const metrics = new Metrics({ build: { version: '1.2.3', git_rev: 'abc' }, packetTypes: ['chat.message', 'ping'] })
  t.teardown(() => metrics.close())
  return metrics
}

const snapshot = (changes: Partial<RouteSnapshot> = {}): RouteSnapshot => ({
  owned: true,
  pending: { inbound: 3, outbound: 1 },
  pendingBytes: 512,
  oldestPendingAgeMs: 1_500,
  blockedChannels: 1,
  conversationsWaiting: 0,
  deltaStreams: 0,
  deadLetters: 2,
  legacyUp: true,
  xagentVersions: ['3.0'],
  channelsOpen: { legacy: 4, xagent: 5 },
  linksPaused: 0,
  ledgerImbalance: { inbound: 0, outbound: 0 },
  ...changes,
})

const ended = (changes: Partial<Ended>): Ended => ({
  type: 'ended', direction: 'inbound', outcome: 'accepted', reason: null, code: null, detail: null, certainty: 'certain', messageId: 'm1' as MessageId,
  originalId: null, attempts: 1, ageMs: 10, inLedger: true, deadLetterId: null, deadLetterBytes: 0, ...changes,
})

/** The value of one series, label values included, or undefined. */
function valueOf(text: string, series: string): number | undefined {
  const line = text.split('\n').find((candidate) => candidate.startsWith(`xagent_gateway_${series} `))
  return line === undefined ? undefined : Number(line.split(' ').at(-1))
}

t.test('exports every metric whose feature is built, under its exact name and labels', async (t) => {
  const text = await started(t).scrape()
  const names = [...text.matchAll(/^# TYPE xagent_gateway_(\S+) (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`)
  t.same(names.sort(), [
    'messages_total counter', 'pending_messages gauge', 'pending_bytes gauge', 'oldest_pending_age_seconds gauge', 'blocked_channels gauge',
    'conversations_waiting gauge', 'turns_total counter', 'delta_streams gauge', 'redeliveries_total counter', 'ack_latency_seconds histogram', 'translate_seconds histogram', 'packets_total counter',
    'packets_filtered_total counter', 'deviations_total counter', 'acks_orphaned_total counter', 'dead_letters_total counter',
    'dead_letters gauge', 'overflow_total counter', 'tool_invocations_total counter', 'tool_seconds histogram', 'legacy_up gauge',
    'xagent_connected gauge', 'xagent_protocol gauge', 'channels_open gauge', 'links_paused gauge', 'links_refused_total counter',
    'routes_owned gauge', 'reconnects_total counter', 'legacy_gaps_total counter', 'legacy_gap_seconds_total counter',
    'store_seconds histogram', 'store_errors_total counter', 'files_bytes gauge', 'limit gauge', 'ledger_imbalance gauge', 'event_loop_lag_seconds gauge',
    'build_info gauge',
  ].sort())
  t.match(text, /xagent_gateway_build_info\{version="1\.2\.3",git_rev="abc",node="\d/)
  t.ok((valueOf(text, 'event_loop_lag_seconds') ?? -1) >= 0)
})

t.test('shows the size of the files kept, by kind', async (t) => {
  const metrics = started(t)
  t.equal(valueOf(await metrics.scrape(), 'files_bytes{kind="staged"}'), 0)
  metrics.filesFrom(() => ({ staged: 12, inbound: 34 }))
  const text = await metrics.scrape()
  t.equal(valueOf(text, 'files_bytes{kind="staged"}'), 12)
  t.equal(valueOf(text, 'files_bytes{kind="inbound"}'), 34)
})

t.test('starts the counters of a route at 0, for every outcome of the table', async (t) => {
  const metrics = started(t)
  metrics.route(ROUTE)
  const text = await metrics.scrape()
  for (const outcome of Object.keys(INBOUND_OUTCOMES)) t.equal(valueOf(text, `messages_total{connector="telegram",direction="inbound",outcome="${outcome}"}`), 0)
  for (const outcome of Object.keys(OUTBOUND_OUTCOMES)) t.equal(valueOf(text, `messages_total{connector="telegram",direction="outbound",outcome="${outcome}"}`), 0)
  t.equal(valueOf(text, 'legacy_gaps_total{connector="telegram"}'), 0)
})

t.test('counts ends, and dead letters by their reason', async (t) => {
  const metrics = started(t)
  const route = metrics.route(ROUTE)
  route.ended(ended({}))
  route.ended(ended({ outcome: 'rejected', reason: 'max_attempts', deadLetterId: 'd1' }))
  route.ended(ended({ direction: 'outbound', outcome: 'in_doubt', reason: 'delivery_in_doubt', deadLetterId: 'd2' }))
  const text = await metrics.scrape()
  t.equal(valueOf(text, 'messages_total{connector="telegram",direction="inbound",outcome="accepted"}'), 1)
  t.equal(valueOf(text, 'messages_total{connector="telegram",direction="outbound",outcome="in_doubt"}'), 1)
  t.equal(valueOf(text, 'dead_letters_total{connector="telegram",direction="inbound",reason="max_attempts"}'), 1)
  t.equal(valueOf(text, 'dead_letters_total{connector="telegram",direction="outbound",reason="delivery_in_doubt"}'), 1)
})

t.test('lets nobody on the wire make up label values', async (t) => {
  const metrics = started(t)
  const route = metrics.route(ROUTE)
  route.setTools(['telegram_message_send'])
  for (const type of ['chat.message', 'made.up"} 1\nevil 1', '__proto__', 'constructor']) route.packet('xagent', type)
  route.toolInvoked('telegram_message_send', 'sent', 20)
  route.toolInvoked('made_up', 'in_doubt', 30)
  route.deviations(['files_key', 'made_up', 'toString'])
  route.onCollect(() => snapshot({ xagentVersions: ['3.0', '3.0.7', '4.1', '3.999999', 'evil"'] }))
  const text = await metrics.scrape()
  t.equal(valueOf(text, 'packets_total{connector="telegram",side="xagent",type="chat.message"}'), 1)
  t.equal(valueOf(text, 'packets_total{connector="telegram",side="xagent",type="other"}'), 3)
  t.equal(valueOf(text, 'tool_invocations_total{connector="telegram",tool="other",outcome="in_doubt"}'), 1)
  t.equal(valueOf(text, 'deviations_total{connector="telegram",reason="other"}'), 2)
  t.equal(valueOf(text, 'xagent_protocol{connector="telegram",version="3.0"}'), 2)
  t.equal(valueOf(text, 'xagent_protocol{connector="telegram",version="4.1"}'), 1)
  t.equal(valueOf(text, 'xagent_protocol{connector="telegram",version="other"}'), 2)
  t.notMatch(text, /made|evil/)
})

t.test('knows every deviation that the lenient readers name', async (t) => {
  const metrics = started(t)
  const ack = (payload: Record<string, unknown>, type: string) => ({ packetId: 'p' as PacketId, type, payload })
  const hello = readHelloAck(ack({}, 'connector.hello.ack'), 'im.telegram' as ConnectorCardId)
  const open = readOpenAck(ack({ connection_descriptor: { schema: 'x', connection: {} } }, 'channel.open.ack'), 'c1' as never)
  const card = readCard({ schema: 'xagent.connector/v1', connector_card_id: 'im.x', supports: { profiles: ['xagent.im.v1'] }, tools: [{}] })
  for (const read of [hello, open, card]) {
    t.ok(read.ok)
    if (read.ok) metrics.route(ROUTE).deviations(read.value.deviations)
  }
  metrics.route(ROUTE).deviations(readHealth({}).deviations)
  const text = await metrics.scrape()
  t.equal(valueOf(text, 'deviations_total{connector="telegram",reason="other"}'), undefined)
  t.equal(valueOf(text, 'deviations_total{connector="telegram",reason="hello_ack_without_version"}'), 1)
})

t.test('asks for live values at every scrape, in seconds where the name says so', async (t) => {
  const metrics = started(t)
  const route = metrics.route(ROUTE)
  let now = snapshot()
  route.onCollect(async () => now)
  let text = await metrics.scrape()
  t.equal(valueOf(text, 'pending_messages{connector="telegram",direction="inbound"}'), 3)
  t.equal(valueOf(text, 'oldest_pending_age_seconds{connector="telegram"}'), 1.5)
  t.equal(valueOf(text, 'channels_open{connector="telegram",side="xagent"}'), 5)
  t.equal(valueOf(text, 'xagent_connected{connector="telegram"}'), 1)
  t.equal(valueOf(text, 'routes_owned'), 1)

  now = snapshot({ owned: false, xagentVersions: [], pending: { inbound: 0, outbound: 0 }, ledgerImbalance: { inbound: -1, outbound: 0 } })
  text = await metrics.scrape()
  t.equal(valueOf(text, 'pending_messages{connector="telegram",direction="inbound"}'), 0)
  t.equal(valueOf(text, 'ledger_imbalance{connector="telegram",direction="inbound"}'), -1)
  t.equal(valueOf(text, 'xagent_protocol{connector="telegram",version="3.0"}'), undefined)
  t.equal(valueOf(text, 'routes_owned'), 0)
})

t.test('leaves out the live values of a route that cannot give them, and serves the rest', async (t) => {
  const metrics = started(t)
  let broken = false
  metrics.route(ROUTE).onCollect(() => {
    if (broken) throw new Error('store unavailable')
    return snapshot()
  })
  metrics.route('feishu' as RouteName).onCollect(() => snapshot())
  await metrics.scrape()
  broken = true
  const text = await metrics.scrape()
  t.equal(valueOf(text, 'pending_bytes{connector="telegram"}'), undefined, 'an old value would be a lie')
  t.equal(valueOf(text, 'pending_bytes{connector="feishu"}'), 512)
})

t.test('answers scrapes that overlap alike', async (t) => {
  const metrics = started(t)
  metrics.route(ROUTE).onCollect(async () => snapshot({ xagentVersions: ['3.0'] }))
  for (const text of await Promise.all([metrics.scrape(), metrics.scrape(), metrics.scrape()])) {
    t.equal(valueOf(text, 'xagent_protocol{connector="telegram",version="3.0"}'), 1)
  }
})

t.test('removes every series of a route that is gone, and only those', async (t) => {
  const metrics = started(t)
  for (const name of [ROUTE, 'feishu' as RouteName]) {
    const route = metrics.route(name)
    route.onCollect(() => snapshot())
    route.ended(ended({}))
    route.ackLatency(40)
    route.packet('legacy', 'ping')
    route.filtered('outbound', 'not_negotiated')
    route.ackOrphaned('malformed')
    route.redelivered('ack_timeout')
    route.limit('ttl_seconds', 3600)
    route.linkRefused('unauthorized')
    route.gap(2_500)
  }
  t.equal(valueOf(await metrics.scrape(), 'legacy_gap_seconds_total{connector="telegram"}'), 2.5)
  await metrics.route(ROUTE).remove()
  const text = await metrics.scrape()
  t.notMatch(text, 'connector="telegram"')
  t.equal(valueOf(text, 'limit{connector="feishu",kind="ttl_seconds"}'), 3600)
  t.equal(metrics.known(ROUTE), undefined)
})

t.test('sorts ack latencies up to a minute into buckets, and times store operations', async (t) => {
  const metrics = started(t)
  metrics.route(ROUTE).ackLatency(45_000)
  metrics.storeDone('commit', 2)
  metrics.storeFailed('commit')
  const text = await metrics.scrape()
  t.equal(valueOf(text, 'ack_latency_seconds_bucket{le="30",connector="telegram"}'), 0)
  t.equal(valueOf(text, 'ack_latency_seconds_bucket{le="60",connector="telegram"}'), 1)
  t.equal(valueOf(text, 'store_seconds_sum{op="commit"}'), 0.002)
  t.equal(valueOf(text, 'store_errors_total{op="commit"}'), 1)
})
