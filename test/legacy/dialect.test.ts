import t from 'tap'
import { readHelloAck, readOpenAck, refusalOf } from '../../src/legacy/dialect.js'
import { readDescriptor } from '../../src/legacy/legacy-descriptor.js'
import type { ConnectorCardId, LegacyChannelId, PacketId } from '../../src/protocol/ids.js'
import type { JsonObject, Packet } from '../../src/protocol/packet.js'
import { CONNECTORS, recordedPacket } from './recorded.js'

const CARD = 'im.example' as ConnectorCardId
const ASKED = 'cch_asked' as LegacyChannelId
const packet = (type: string, rest: Partial<Packet> = {}): Packet => ({ packetId: 'pkt_1' as PacketId, type, payload: {}, ...rest })

const CURRENT_DESCRIPTOR: JsonObject = {
  schema: 'xagent.connection/v2',
  connection: {
    connector_card_id: 'im.example', connector_id: 'conn_1', connector_channel_id: 'cch_1',
    target_type: 'im', profiles: ['xagent.im.v1'], status: 'connected',
  },
  target: { provider: 'example', display_name: 'Example' },
  tools: [],
}

for (const connector of CONNECTORS) {
  t.test(`reads the recorded answers of ${connector}`, async (t) => {
    const cardId = `im.${connector}` as ConnectorCardId
    const hello = readHelloAck(recordedPacket(connector, 'hello'), cardId)
    t.match(hello, { ok: true, value: { connectorId: /^conn_im/, protocolVersion: null, deviations: ['hello_ack_without_version'] } })
    t.match(readHelloAck(recordedPacket(connector, 'hello with another card id'), cardId), { ok: false, error: { code: 'connector_card_id_mismatch' } })
    const first = recordedPacket(connector, 'channel.open, first time')
    t.match(readOpenAck(first, ''), {
      ok: true,
      value: {
        channelId: first.channelId,
        descriptor: { cardId, channelId: first.channelId, profiles: ['xagent.im.v1'], status: 'created' },
        deviations: ['descriptor_v1', 'descriptor_without_tools'],
      },
    })
    const again = readOpenAck(recordedPacket(connector, 'channel.open again'), ASKED)
    t.match(again, { ok: true, value: { descriptor: { status: 'connected' }, deviations: ['descriptor_v1'] } })
  })
}

t.test('reads answers of the 3.0 dialect without a deviation', async (t) => {
  const hello = packet('connector.hello.ack', { payload: { connector_card_id: CARD, connector_id: 'conn_1', protocol_version: '3.0' } })
  t.same(readHelloAck(hello, CARD), { ok: true, value: { connectorId: 'conn_1', protocolVersion: '3.0', deviations: [] } })
  const open = packet('channel.open.ack', {
    channelId: 'cch_1', payload: { connector_channel_id: 'cch_1', connection_descriptor: CURRENT_DESCRIPTOR },
  })
  t.match(readOpenAck(open, ASKED), { ok: true, value: { channelId: 'cch_1', descriptor: { profiles: ['xagent.im.v1'], status: 'connected' } } })
  const read = readOpenAck(open, ASKED)
  t.same(read.ok && read.value.deviations, [])
})

t.test('the errors of both shapes are read alike', async (t) => {
  const error = { code: 'hello_required', message: 'words' }
  t.same(refusalOf(packet('error', { error })), error)
  t.same(refusalOf(packet('auth.start.ack', { error })), error)
  t.equal(refusalOf(packet('auth.start.ack')), null)
  t.match(refusalOf(packet('error')), { code: 'unnamed_error' })
})

t.test('a hello that another card accepts is no hello', async (t) => {
  const hello = packet('connector.hello.ack', { payload: { connector_card_id: 'im.other', connector_id: 'conn_1' } })
  t.match(readHelloAck(hello, CARD), { ok: false, error: { code: 'connector_card_id_mismatch' } })
  t.match(readHelloAck(packet('channel.open.ack'), CARD), { ok: false, error: { code: 'invalid_packet' } })
})

t.test('channel.open.ack: an id that stands in one place only is found there', async (t) => {
  const ids = [
    packet('channel.open.ack', { channelId: 'cch_1' }),
    packet('channel.open.ack', { payload: { connector_channel_id: 'cch_1' } }),
    packet('channel.open.ack', { payload: { connection_descriptor: CURRENT_DESCRIPTOR } }),
  ].map((ack) => readOpenAck(ack, ASKED))
  for (const read of ids) t.match(read, { ok: true, value: { channelId: 'cch_1' } })
  t.same(ids.map((read) => read.ok && read.value.deviations), [
    ['open_ack_without_payload_id', 'open_ack_without_descriptor'],
    ['open_ack_without_envelope_id', 'open_ack_without_descriptor'],
    ['open_ack_without_envelope_id', 'open_ack_without_payload_id'],
  ])
})

t.test('channel.open.ack without any id keeps the asked one; a first open cannot be guessed', async (t) => {
  t.match(readOpenAck(packet('channel.open.ack'), ASKED), { ok: true, value: { channelId: 'cch_asked', descriptor: null } })
  t.match(readOpenAck(packet('channel.open.ack'), ''), { ok: false, error: { code: 'invalid_packet' } })
})

t.test('channel.open.ack with different ids: the payload names the new one', async (t) => {
  const read = readOpenAck(packet('channel.open.ack', { channelId: ASKED, payload: { connector_channel_id: 'cch_new' } }), ASKED)
  t.match(read, { ok: true, value: { channelId: 'cch_new' } })
  t.ok(read.ok && read.value.deviations.includes('open_ack_ids_differ'))
})

t.test('a Descriptor with a status of nobody\'s list counts as not signed in', async (t) => {
  const read = readDescriptor({ schema: 'xagent.connection/v2', connection: { profiles: ['xagent.im.v1'], status: 'great' }, tools: [] })
  t.match(read, { status: 'created', channelId: null, deviations: ['descriptor_status'] })
})

t.test('what is no Descriptor is none', async (t) => {
  for (const body of [undefined, null, 'text', [], {}, { connection: 'connected' }]) t.equal(readDescriptor(body), null)
})
