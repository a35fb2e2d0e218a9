import t from 'tap'
import { newLedger } from '../../src/core/ledger.js'
import type { Ended } from '../../src/core/effect.js'
import { StoreError, err, ok, type Result } from '../../src/protocol/errors.js'
import type { ChannelId, LegacyChannelId, LinkId, MessageId, PacketId, RequestId } from '../../src/protocol/ids.js'
import { IM_V2 } from '../../src/protocol/im-v2.js'
import type { JsonObject, Packet } from '../../src/protocol/packet.js'
import { ChannelTable } from '../../src/route/channel-table.js'
import type { RouteContext } from '../../src/route/context.js'
import { NorthLinks } from '../../src/route/north-link.js'
import { NorthReplies } from '../../src/route/north-replies.js'
import { UNSTORED_FILES, type ForwardFailure, type RelayFiles } from '../../src/route/relay-files.js'
import { RelayedPackets } from '../../src/route/relayed-packets.js'
import { V2Relay } from '../../src/route/v2-relay.js'

/** A relay between an xAgent and a connector that are lists of packets. */
function rig(files: Partial<RelayFiles> = {}, read: () => unknown = () => undefined) {
  const north: Packet[] = []
  const south: Packet[] = []
  const ended: Ended[] = []
  const counts: Record<string, number> = {}
  const count = (name: string): void => { counts[name] = (counts[name] ?? 0) + 1 }
  const state = { north: 'queued' as 'queued' | 'full' | 'too_large', up: true, stopping: false, reopened: 0 }
  const table = new ChannelTable()
  const entry = table.add('cch_north' as ChannelId, 'cch_south' as LegacyChannelId)
  const links = new NorthLinks()
  const link = links.add({
    id: 'link_1' as LinkId, remoteAddress: '', helloDone() {}, close() {},
    send(packet) {
      if (state.north === 'queued') north.push(packet)
      return state.north
    },
  })
  link.channels.set(entry.id, entry)
  entry.channel.link = { id: link.socket.id, as: entry.id }
  entry.channel.legacyOpen = true
  let ids = 0
  const context = {
    settings: { observe: false }, table, ledger: newLedger(), newId: (prefix: string) => `${prefix}${(ids += 1)}`, now: () => 1_000, card: () => ({ spoken: IM_V2 }),
    commits: { read }, log: { warn() {}, error() {} },
    metrics: {
      deviations: (reasons: Iterable<string>) => { for (const reason of reasons) count(reason) }, filtered: (direction: string, reason: string) => count(`${direction} ${reason}`),
      ackOrphaned: (reason: string) => count(`orphaned ${reason}`), ackLatency() {}, overflowed: (kind: string) => count(`overflow ${kind}`),
    },
  } as unknown as RouteContext
  const main = { get up() { return state.up }, send(packet: Packet) { south.push(packet); return true } }
  const relay = new V2Relay(context, links, main, { ...UNSTORED_FILES, ...files }, new NorthReplies(context), {
    ended: (_entry, one) => ended.push(one), stopping: () => state.stopping, reopen: () => { state.reopened += 1 },
  })
  const packet = (type: string, channelId: string, payload: JsonObject, more: Partial<Packet> = {}): Packet => ({ packetId: `${type}_${(ids += 1)}` as PacketId, channelId, type, payload, ...more })
  let begun = 0
  return {
    north, south, ended, counts, state, links, link, entry, relay, context, begun: () => begun,
    write: (payload: JsonObject, more: Partial<Packet> = {}) => relay.messageFromConnector(packet('chat.message', 'cch_south', payload, more)),
    final: (payload: JsonObject, more: Partial<Packet> = {}) => relay.final(link, packet('chat.message', 'cch_north', payload, more), entry, { invalid: () => count('invalid'), begun: () => { begun += 1 } }),
    ackSouth: (replyTo: PacketId | undefined, messageId: string) => relay.ackFromConnector(packet('chat.message.ack', 'cch_south', { message_id: messageId, status: 'accepted' }, replyTo === undefined ? {} : { replyTo })),
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))
const FILE = { type: 'file', file_ref: 'f', download_url: '/files/refs/f' }

t.test('a request id comes back on the answer of the other side', async (t) => {
  const { final, south, north, ackSouth } = rig()
  final({ message_id: 'a1', text: 'x' }, { requestId: 'req_1' as RequestId })
  t.equal(south[0]?.requestId, undefined, 'it does not cross')
  ackSouth(south[0]?.packetId, 'a1')
  t.match(north, [{ type: 'chat.message.ack', requestId: 'req_1', channelId: 'cch_north', payload: { message_id: 'a1', status: 'accepted' } }])
})

t.test('the first ack is the only one', async (t) => {
  const { final, south, north, ackSouth, counts } = rig()
  final({ message_id: 'a1', text: 'x' })
  ackSouth(south[0]?.packetId, 'a1')
  ackSouth(south[0]?.packetId, 'a1')
  t.equal(north.length, 1)
  t.equal(counts['orphaned unknown_packet'], 1)
})

t.test('an ack for a link that is gone is lost with it', async (t) => {
  const { final, south, north, ackSouth, links, link } = rig()
  final({ message_id: 'a1', text: 'x' })
  links.delete(link.socket.id)
  ackSouth(south[0]?.packetId, 'a1')
  t.strictSame(north, [])
})

t.test('a full link takes nothing: not acked, and asked for again when xAgent opens the channel', async (t) => {
  const { write, state, south, relay, entry, counts, context } = rig()
  state.north = 'full'
  write({ message_id: 'u1', text: 'x' })
  t.strictSame(south, [])
  t.equal(counts['inbound no_link'], 1)
  relay.opened(entry)
  relay.opened(entry)
  t.equal(state.reopened, 1, 'once')
  t.strictSame(context.ledger.inbound, { carriedOver: 0, received: 0, replayed: 0, ended: 0 })
})

t.test('a message that no frame can hold ends here, and the connector is told', async (t) => {
  const { write, state, south, ended, context } = rig()
  state.north = 'too_large'
  write({ message_id: 'u1', text: 'x' })
  t.match(south, [{ type: 'chat.message.ack', payload: { message_id: 'u1', status: 'rejected', code: 'message_too_large', retryable: false } }])
  t.match(ended, [{ direction: 'inbound', outcome: 'too_large', deadLetterId: null }])
  t.match(context.ledger.inbound, { received: 1, ended: 1 })
})

t.test('while the gateway stops nothing new is begun on either side', async (t) => {
  const { write, final, state, south, north } = rig()
  state.stopping = true
  write({ message_id: 'u1', text: 'x' })
  final({ message_id: 'a1', text: 'x' })
  t.strictSame(south, [])
  t.match(north, [{ type: 'chat.message.ack', payload: { status: 'rejected', code: 'shutting_down', retryable: true } }])
})

t.test('messages keep their order while the files of one are waited for', async (t) => {
  let known: (url: string) => void = () => {}
  const { write, north } = rig({ remember: () => new Promise((resolve) => { known = resolve }) })
  write({ message_id: 'u1', files: [FILE] })
  write({ message_id: 'u2', text: 'second' })
  t.strictSame(north, [])
  known('/files/refs/own')
  await settled()
  t.match(north, [{ payload: { message_id: 'u1', files: [{ file_ref: 'f', download_url: '/files/refs/own' }] } }, { payload: { message_id: 'u2', text: 'second' } }])
})

t.test('one message whose files cannot be remembered does not stop those behind it', async (t) => {
  const { write, north, south } = rig({ remember: () => Promise.reject(new Error('says the test')) })
  write({ message_id: 'u1', files: [FILE] })
  write({ message_id: 'u2', text: 'second' })
  await settled()
  t.match(north, [{ payload: { message_id: 'u2' } }])
  t.strictSame(south, [], 'not acked: the connector keeps it')
})

t.test('references of a final are the connector\'s own by then', async (t) => {
  const { final, south } = rig({ forward: (_entry, ref) => Promise.resolve(ok(`${ref}_south`)) })
  final({ message_id: 'a1', text: 'see', files: [{ type: 'file', file_ref: 'f1', download_url: 'https://xagent.internal/f1' }, { type: 'file', file_ref: 'f2' }] })
  await settled()
  t.strictSame(south[0]?.payload['files'], [{ type: 'file', file_ref: 'f1_south' }, { type: 'file', file_ref: 'f2_south' }])
})

t.test('a file that the connector does not take: the final is refused as a whole', async (t) => {
  const failing = async (failure: ForwardFailure) => {
    const r = rig({ forward: (): Result<string, ForwardFailure> => err(failure) })
    r.final({ message_id: 'a1', text: 'x', files: [{ type: 'file', file_ref: 'f1' }] })
    t.strictSame(r.south, [])
    return r
  }
  const later = await failing({ code: 'http_503', retry: true })
  t.match(later.north, [{ payload: { status: 'rejected', code: 'target_temporarily_unavailable', retryable: true } }])
  t.match(later.ended, [{ outcome: 'deferred', inLedger: false }])
  t.equal(later.context.ledger.outbound.received, 0)
  const never = await failing({ code: 'http_413', retry: false })
  t.match(never.north, [{ payload: { status: 'rejected', code: 'target_delivery_failed', retryable: false } }])
  t.match(never.ended, [{ outcome: 'rejected', inLedger: true }])
  t.match(never.context.ledger.outbound, { received: 1, ended: 1 })
})

t.test('a final that the route began while it translated is finished there', async (t) => {
  const { final, south, entry, begun } = rig({}, () => ({ state: 'ended' }))
  entry.channel.deferred.set('a1' as MessageId, 1)
  final({ message_id: 'a1', text: 'x' })
  entry.channel.endedOutboundCount = 1
  final({ message_id: 'a2', text: 'x' })
  t.equal(begun(), 2)
  t.strictSame(south, [])
})

t.test('where the store cannot say whether it was begun, the final is put off', async (t) => {
  for (const read of [() => { throw new StoreError('store_unavailable', 'x') }, () => Promise.reject(new StoreError('store_unavailable', 'x'))]) {
    const { final, south, north, entry } = rig({}, read)
    entry.channel.endedOutboundCount = 1
    final({ message_id: 'a1', text: 'x' })
    await settled()
    t.match(north, [{ payload: { status: 'rejected', code: 'store_unavailable', retryable: true } }])
    t.strictSame(south, [])
  }
})

t.test('what may still be answered is bounded: the oldest is forgotten, and counted per channel', async (t) => {
  let forgotten = 0
  const packets = new RelayedPackets(2, () => { forgotten += 1 })
  const { entry } = rig()
  const add = (id: string) => packets.add(id as PacketId, { entry, packetId: `from_${id}` as PacketId, requestId: undefined, messageId: null, sentAt: 0, from: null })
  for (const id of ['p1', 'p2', 'p3']) add(id)
  const answers = (id: string) => ({ packetId: 'x' as PacketId, type: 'error', payload: {}, replyTo: id as PacketId })
  t.equal(packets.answeredBy(answers('p1'), entry), null)
  t.equal(packets.answeredBy(answers('p3'), entry)?.packetId, 'from_p3')
  t.equal(packets.answeredBy(answers('p3'), rig().entry), null, 'on another channel it is no answer')
  t.equal(forgotten, 1)
  t.equal(packets.waitingOn(entry), 2)
  packets.done(answers('p2'))
  packets.done(answers('p2'))
  packets.done(answers('p3'))
  t.equal(packets.waitingOn(entry), 0)
})
