/** Golden transcripts: what xAgent gets of every recorded packet that is no push and no tool answer; and that none is forgotten. */
import t from 'tap'
import { readHelloAck, readOpenAck, refusalOf } from '../../src/legacy/dialect.js'
import { readCard, readHealth } from '../../src/legacy/legacy-card.js'
import { readDescriptor } from '../../src/legacy/legacy-descriptor.js'
import type { ChannelId, ConnectorCardId, ConnectorId, LegacyChannelId } from '../../src/protocol/ids.js'
import { isObject, type JsonObject } from '../../src/protocol/packet.js'
import { projectCard, type ProjectedCard } from '../../src/translate/card.js'
import { projectDescriptor } from '../../src/translate/descriptor.js'
import { cancelAck, signInAck } from '../../src/translate/sign-in.js'
import { recordedBody, recordedCases, recordedPacket } from '../legacy/recorded.js'
import { goldenFile, goldenOutcomes, goldenPairs, presetOf } from './golden.js'

type Fronted = 'wechat' | 'feishu'
const FRONTED: readonly Fronted[] = ['wechat', 'feishu']
const cardIdOf = (connector: Fronted) => `im.${connector}` as ConnectorCardId

interface Transcript {
  readonly connector: Fronted
  readonly case: string
  /** How the gateway reads the packet. */
  readonly as: 'health' | 'hello' | 'opened' | 'refused' | 'sign-in' | 'descriptor' | 'pong' | 'closed'
  readonly v2: JsonObject
}
const transcripts = goldenFile<Transcript[]>('sign-in')
const cards = goldenFile<Record<Fronted, JsonObject>>('cards')

const project = (connector: Fronted, descriptor: unknown) => projectDescriptor(readDescriptor(descriptor)?.body ?? null, {
  cardId: cardIdOf(connector), connectorId: 'conn_gateway' as ConnectorId, channelId: 'cch_north' as ChannelId, tools: [...servedCard(connector).tools.keys()], trouble: null,
})

function servedCard(connector: Fronted): ProjectedCard {
  const card = projectCard(recordedBody(connector, 'card'), {
    preset: presetOf(connector), build: { build_time: '2026-01-01T00:00:00Z' }, apiKeyRequired: true, files: false, skill: null,
  })
  if (card === null) throw new Error('the recorded Card names its id')
  return card
}

/** The packet as the gateway reads it, in the form of the transcript. */
function read({ connector, case: name, as }: Transcript): unknown {
  if (as === 'health') {
    const health = readHealth(recordedBody(connector, name))
    return { ok: health.ok, card_version: health.cardVersion }
  }
  const packet = recordedPacket(connector, name)
  const refusal = refusalOf(packet)
  if (as === 'refused' || refusal !== null) return { code: refusal?.code }
  const { payload } = packet
  switch (as) {
    case 'hello': {
      const hello = readHelloAck(packet, cardIdOf(connector))
      return hello.ok && { connector_id: hello.value.connectorId }
    }
    case 'opened': {
      const open = readOpenAck(packet, 'cch_asked' as LegacyChannelId)
      return open.ok && { legacy_id: open.value.channelId, connection_descriptor: project(connector, open.value.descriptor?.body) }
    }
    case 'sign-in': {
      const descriptor = payload['connection_descriptor']
      return signInAck(payload, {
        channelId: 'cch_north' as ChannelId, sessionId: 'auth_gateway', flowId: String(payload['flow_id']), descriptor: descriptor === undefined ? null : project(connector, descriptor),
      })
    }
    case 'descriptor': return { connection_descriptor: project(connector, payload['connection_descriptor']) }
    case 'pong': return { type: packet.type }
    case 'closed': return { status: payload['status'] }
  }
}

for (const transcript of transcripts) {
  t.test(`golden: ${transcript.connector}: ${transcript.case}`, async (t) => {
    t.strictSame(read(transcript), transcript.v2)
    if (transcript.as !== 'sign-in' && transcript.as !== 'descriptor') return
    const { payload } = recordedPacket(transcript.connector, transcript.case)
    const open = recordedPacket(transcript.connector, 'channel.open, first time')
    for (const id of [payload['auth_session_id'], open.channelId, connectorIdIn(open.payload)]) {
      if (typeof id === 'string') t.notOk(JSON.stringify(transcript.v2).includes(id), `stays south: ${id}`)
    }
  })
}

for (const connector of FRONTED) {
  t.test(`golden: the Card of ${connector}`, async (t) => {
    t.ok(readCard(recordedBody(connector, 'card')).ok)
    const { card, skill } = servedCard(connector)
    const { connector: said, ...rest } = card
    const { connector: wanted, ...others } = cards[connector]
    t.strictSame(rest, others)
    t.strictSame({ ...(said as object), version: null }, { ...(wanted as object), version: null })
    t.match((said as JsonObject)['version'], /^0\.0\.4\+gateway\.[0-9a-f]{8}$/)
    t.notMatch(JSON.stringify([card, skill]), /im-connector-reply|media_ref|reply_ref|\/media\/|xagent\.im\.v1/)
  })

  t.test(`every recorded line of ${connector} is in some golden file`, async (t) => {
    const covered = [
      'card', ...transcripts.filter((one) => one.connector === connector).map((one) => one.case), ...goldenPairs(connector).map((pair) => pair.case), ...Object.keys(goldenOutcomes(connector)),
    ]
    t.strictSame(recordedCases(connector).filter((name) => !covered.includes(name)), [], 'not covered')
    t.strictSame(covered.filter((name) => !recordedCases(connector).includes(name)), [], 'not recorded')
    t.equal(new Set(covered).size, covered.length, 'none twice')
  })
}

t.test('the end of a sign-in: listed statuses only, and no session id of the connector', async (t) => {
  t.strictSame(cancelAck({ auth_session_id: 'auth_legacy', status: 'canceled', auth_status: 'expired', reason: 'x' }, 'auth_gateway'), {
    auth_session_id: 'auth_gateway', status: 'canceled', auth_status: 'expired',
  })
  t.strictSame(cancelAck({ auth_session_id: 'auth_legacy', status: 'gone', auth_status: 'odd' }, 'auth_gateway'), { auth_session_id: 'auth_gateway', status: 'ignored' })
})

t.test('a status that no client knows becomes failed, and a message is shown without what looks like a secret', async (t) => {
  const ack = signInAck(
    { status: 'confirming', expires_at: -1, poll_interval_millis: 1.5, message: 'Post "https://platform.example/x?token=abc": EOF', session_id: 's' },
    { channelId: 'cch_north' as ChannelId, sessionId: 'auth_gateway', flowId: null, descriptor: null },
  )
  t.match(ack, { connector_channel_id: 'cch_north', auth_session_id: 'auth_gateway', status: 'failed' })
  t.strictSame(Object.keys(ack).sort(), ['auth_session_id', 'connector_channel_id', 'message', 'status'])
  t.notMatch(ack['message'], /abc/)
})

function connectorIdIn(payload: JsonObject): unknown {
  const descriptor = payload['connection_descriptor']
  return isObject(descriptor) && isObject(descriptor['connection']) ? descriptor['connection']['connector_id'] : undefined
}
