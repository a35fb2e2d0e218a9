import t from 'tap'
import { LIMITS, LINK, Rig, T0 } from '../helper/channel-rig.js'
import type { LinkId, PacketId } from '../../src/protocol/ids.js'

t.test('a message is pending until accepted or duplicate (v2 §9)', async (t) => {
  for (const status of ['accepted', 'duplicate'] as const) {
    const rig = new Rig()
    rig.open()
    rig.push('hello')
    t.equal(rig.channel.bySeq.size, 1)
    rig.ack(rig.lastTransmit(), { status })
    t.equal(rig.channel.bySeq.size, 0)
    t.match(rig.ended, [{ outcome: status, reason: null, certainty: 'certain', deadLetterId: null }])
    t.equal(rig.records('inbound').length, 0)
    t.equal(rig.records('body').length, 0)
    t.equal(rig.records('completed').length, 1)
  }
})

t.test('redelivers with the same message_id and a new packet_id after ack timeout (v2 §9)', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('hello')
  rig.pass(31_000)
  t.equal(rig.transmits.length, 2)
  const [first, second] = rig.transmits
  t.equal(first?.messageId, second?.messageId)
  t.not(first?.packetId, second?.packetId)
  t.equal(second?.cause, 'ack_timeout')
  t.equal(rig.ended.length, 0, 'a timeout is not an end')
})

t.test('an ack for an earlier transmission of this run counts', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('hello')
  const first = rig.lastTransmit()
  rig.pass(31_000)
  t.equal(rig.transmits.length, 2)
  rig.ack(first, { status: 'accepted' })
  t.match(rig.ended, [{ outcome: 'accepted' }])
})

t.test('an ack with another message_id or reply_to changes nothing and is counted (v2 §7)', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('hello')
  const { packetId, messageId } = rig.lastTransmit()
  rig.event({ type: 'acked', replyTo: packetId, verdict: { status: 'accepted', messageId: 'another' as typeof messageId } })
  for (const replyTo of ['pkt_other', 'pkt_run1_1_99', 'pkt_run0_1_1', `${packetId}_`, `${packetId.slice(0, -1)}0`, 'pkt_run1_zz_1']) {
    rig.event({ type: 'acked', replyTo: replyTo as PacketId, verdict: { status: 'accepted', messageId } })
  }
  t.equal(rig.ended.length, 0)
  t.equal(rig.channel.bySeq.size, 1)
  t.strictSame(rig.of('ack_orphaned').map(({ reason }) => reason), ['other_message', ...Array<string>(6).fill('unknown_packet')])
})

t.test('an ack of another channel does not end a message of this one', async (t) => {
  const one = new Rig({}, 'cch_1')
  const other = new Rig({}, 'cch_2')
  one.shared.nextSeq = 5
  for (const rig of [one, other]) { rig.open(); rig.push('hello') }
  one.event({ type: 'acked', replyTo: other.lastTransmit().packetId, verdict: { status: 'accepted', messageId: one.lastTransmit().messageId } })
  t.equal(one.ended.length, 0)
  t.match(one.of('ack_orphaned'), [{ reason: 'unknown_packet' }])
})

t.test('rejected with retryable false is a dead letter with its code, and is not sent again (v2 §9)', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('hello')
  rig.reject(rig.lastTransmit(), 'permission_denied', false)
  rig.pass(3_600_000)
  t.equal(rig.transmits.length, 1)
  t.match(rig.ended, [{ outcome: 'rejected', reason: 'rejected', code: 'permission_denied', certainty: 'certain' }])
  t.match(rig.deadLetters(), [{ reason: 'rejected', code: 'permission_denied', direction: 'inbound' }])
  t.ok(rig.store.has(`body ${rig.deadLetters()[0]?.bodyKey}`), 'its words are kept with it')
})

t.test('rejected with retryable true is sent again after a backoff that grows', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('hello')
  const gaps: number[] = []
  for (let round = 0; round < 8; round += 1) {
    const at = rig.now
    rig.reject(rig.lastTransmit(), 'later', true)
    gaps.push(rig.nextAt - at)
    rig.pass(rig.nextAt - rig.now)
  }
  for (const [round, gap] of gaps.entries()) {
    const ceiling = Math.min(30_000, 500 * 2 ** round)
    t.ok(gap >= ceiling / 2 && gap <= ceiling, `wait ${round}: ${gap} ms is within half of ${ceiling} ms and all of it`)
  }
  t.equal(rig.transmits.length, 9)
})

t.test('a rejection without boolean retryable is a protocol fault and temporary', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('hello')
  rig.ack(rig.lastTransmit(), { status: 'rejected', code: 'x', retryable: true, protocolFault: true, saidRetryable: null })
  t.equal(rig.of('ack_fault').length, 1)
  rig.pass(1_000)
  t.equal(rig.transmits.length, 2)
})

t.test('max_attempts counts explicit rejections alone: not busy, not timeouts, not lost links', async (t) => {
  const rig = new Rig({ limits: { maxAttempts: 2 } })
  rig.open()
  rig.push('hello')
  rig.pass(31_000)
  for (let round = 0; round < 5; round += 1) {
    rig.reject(rig.lastTransmit(), 'channel_busy', true)
    rig.pass(31_000)
  }
  rig.leave()
  rig.open('link_2' as LinkId)
  t.equal(rig.ended.length, 0)
  rig.reject(rig.lastTransmit(), 'later', true)
  rig.pass(2_000)
  t.equal(rig.ended.length, 0)
  rig.reject(rig.lastTransmit(), 'later', true)
  t.match(rig.ended, [{ outcome: 'rejected', reason: 'max_attempts', code: 'later' }])
  t.match(rig.deadLetters(), [{ reason: 'max_attempts' }])
})

t.test('channel_busy is temporary, unless retryable is false', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('hello')
  rig.reject(rig.lastTransmit(), 'channel_busy', true)
  rig.pass(1_000)
  t.equal(rig.lastTransmit().cause, 'busy')
  rig.reject(rig.lastTransmit(), 'channel_busy', false)
  t.match(rig.ended, [{ outcome: 'rejected', code: 'channel_busy' }])
})

t.test('an error packet that answers ours: invalid is permanent, not open waits for the open, the rest is temporary', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('one')
  rig.event({ type: 'error_answered', replyTo: rig.lastTransmit().packetId, code: 'something_else' })
  rig.pass(1_000)
  t.equal(rig.transmits.length, 2)
  rig.event({ type: 'error_answered', replyTo: rig.lastTransmit().packetId, code: 'channel_not_open' })
  rig.pass(60_000)
  t.equal(rig.transmits.length, 2, 'nothing is sent before the channel is opened again')
  rig.open()
  t.equal(rig.transmits.length, 3)
  rig.event({ type: 'error_answered', replyTo: rig.lastTransmit().packetId, code: 'invalid_packet' })
  t.match(rig.ended, [{ outcome: 'rejected', code: 'invalid_packet' }])
})

t.test('messages of a channel go in order, one in flight', async (t) => {
  const rig = new Rig()
  const ids = ['a', 'b', 'c'].map((text) => rig.push(text))
  t.equal(rig.transmits.length, 0, 'nothing is sent while xAgent is away')
  rig.open()
  for (let i = 0; i < 3; i += 1) {
    t.equal(rig.transmits.length, i + 1)
    rig.ack(rig.lastTransmit(), { status: 'accepted' })
  }
  t.strictSame(rig.transmits.map(({ messageId }) => messageId), ids)
})

t.test('window lets several messages be in flight, in order', async (t) => {
  const rig = new Rig({ limits: { window: 2 } })
  rig.open()
  for (const text of ['a', 'b', 'c']) rig.push(text)
  t.equal(rig.transmits.length, 2)
  rig.ack(rig.transmits[1]!, { status: 'accepted' })
  t.equal(rig.transmits.length, 3)
})

t.test('a head that is rejected as temporary for ever ends by expiry, and the next one goes', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('stubborn')
  rig.pass(1_000)
  rig.push('next')
  const stubborn = rig.lastTransmit().messageId
  for (let guard = 0; guard < 10_000 && rig.ended.length === 0; guard += 1) {
    const last = rig.lastTransmit()
    if (last.messageId === stubborn) rig.reject(last, 'later', true)
    rig.pass(Math.max(1, rig.nextAt - rig.now))
  }
  t.match(rig.ended, [{ outcome: 'expired', reason: 'expired', code: 'later', certainty: 'certain' }])
  t.ok(rig.now - T0 >= 3_600_000 && rig.now - T0 < 3_602_000, 'at the end of its own retention')
  t.not(rig.lastTransmit().messageId, stubborn)
})

t.test('an expired message is never sent, and says that it was never handed over', async (t) => {
  const rig = new Rig()
  rig.push('hello')
  rig.pass(3_600_000)
  t.match(rig.ended, [{ outcome: 'expired', reason: 'expired', certainty: 'certain', attempts: 0 }])
  rig.open()
  t.equal(rig.transmits.length, 0)
})

t.test('expiry holds at the moment of the open, without any timer in between', async (t) => {
  const rig = new Rig()
  rig.push('hello')
  rig.now += 3_600_000
  rig.open()
  t.equal(rig.transmits.length, 0)
  t.match(rig.ended, [{ outcome: 'expired' }])
})

t.test('what is in flight is not expired before its ack timeout, and then ends with certainty unknown', async (t) => {
  const rig = new Rig()
  rig.push('hello')
  rig.now += 3_599_000
  rig.open()
  t.equal(rig.transmits.length, 1)
  rig.pass(10_000)
  t.equal(rig.ended.length, 0)
  rig.pass(21_000)
  t.match(rig.ended, [{ outcome: 'expired', certainty: 'unknown' }])
})

t.test('what is in flight and accepted after its expiry is accepted', async (t) => {
  const rig = new Rig()
  rig.push('hello')
  rig.now += 3_599_000
  rig.open()
  rig.pass(10_000)
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  t.match(rig.ended, [{ outcome: 'accepted' }])
})

t.test('a lost link is no delivery: the message goes again on the next open, at once', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('hello')
  rig.leave()
  rig.pass(60_000)
  t.equal(rig.transmits.length, 1)
  rig.open('link_2' as LinkId)
  t.equal(rig.transmits.length, 2)
  t.equal(rig.lastTransmit().cause, 'link_lost')
  t.equal(rig.lastTransmit().link, 'link_2')
})

t.test('an open resets the backoff', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('hello')
  for (let round = 0; round < 6; round += 1) {
    rig.reject(rig.lastTransmit(), 'later', true)
    rig.pass(rig.nextAt - rig.now)
  }
  rig.reject(rig.lastTransmit(), 'later', true)
  const before = rig.transmits.length
  rig.open('link_2' as LinkId)
  t.equal(rig.transmits.length, before + 1)
})

t.test('a full buffer is no transmission: the message waits for the drain', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('hello')
  const { seq, cause } = rig.lastTransmit()
  rig.event({ type: 'send_failed', seq, reason: 'full', cause })
  rig.pass(120_000)
  t.equal(rig.transmits.length, 1)
  rig.event({ type: 'drained', link: LINK })
  t.equal(rig.transmits.length, 2)
  t.equal(rig.lastTransmit().cause, null, 'it is no redelivery')
})

t.test('a link that is gone but not yet said to be is not tried in circles', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('hello')
  rig.event({ type: 'send_failed', seq: rig.lastTransmit().seq, reason: 'closed', cause: null })
  rig.pass(120_000)
  t.equal(rig.transmits.length, 1)
  rig.leave()
  rig.open('link_2' as LinkId)
  t.equal(rig.transmits.length, 2)
})

t.test('a message over the frame limit is a dead letter, and the next one goes', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('large')
  rig.push('small')
  rig.event({ type: 'send_failed', seq: rig.lastTransmit().seq, reason: 'too_large', cause: null })
  t.match(rig.ended, [{ outcome: 'too_large', reason: 'message_too_large', certainty: 'certain' }])
  t.equal(rig.transmits.length, 2)
})

t.test('words that are gone from the store end the message as what it is now; those that cannot be read at the moment are read again', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('gone')
  rig.push('unread')
  rig.event({ type: 'send_failed', seq: rig.lastTransmit().seq, reason: 'body_lost', cause: null })
  t.match(rig.ended, [{ outcome: 'empty', reason: 'empty_message', code: 'body_lost', certainty: 'certain' }])
  const { seq } = rig.lastTransmit()
  rig.event({ type: 'send_failed', seq, reason: 'store_unavailable', cause: null })
  t.equal(rig.transmits.length, 2)
  rig.pass(LIMITS.backoffMaxMs)
  t.match(rig.transmits.slice(2), [{ seq }])
})

t.test('a message with a target of its own waits for its commit; one without is sent at once', async (t) => {
  const plain = new Rig({ holdCommits: true })
  plain.open()
  plain.push('hello')
  t.equal(plain.transmits.length, 1)
  const bound = new Rig({ holdCommits: true, preset: 'generic' })
  bound.open()
  bound.push('hello', { reply: { tool_id: 'reply', reply_ref: 'ref_1' } })
  t.equal(bound.transmits.length, 0)
  bound.releaseCommits()
  t.equal(bound.transmits.length, 1)
})

t.test('a redelivery always has a durable record', async (t) => {
  const rig = new Rig({ holdCommits: true })
  rig.open()
  rig.push('hello')
  rig.pass(31_000)
  t.equal(rig.transmits.length, 1)
  rig.releaseCommits()
  t.equal(rig.transmits.length, 2)
})

t.test('after a restart: same message_id, same expiry, in order, once', async (t) => {
  const before = new Rig()
  const ids = [before.push('a'), before.push('b')]
  const after = new Rig({ store: before.store, now: T0 + 3_000_000 })
  after.open()
  after.ack(after.lastTransmit(), { status: 'accepted' })
  t.strictSame(after.transmits.map(({ messageId }) => messageId), ids)
  after.leave()
  after.pass(599_999)
  t.equal(after.ended.length, 1, 'not expired before its own time')
  after.pass(1)
  t.match(after.ended[1], { outcome: 'expired', ageMs: 3_600_000 })
})

t.test('a restart with an earlier clock does not prolong retention beyond one ttl', async (t) => {
  const before = new Rig()
  before.push('a')
  const after = new Rig({ store: before.store, now: T0 - 86_400_000 })
  after.pass(3_600_000)
  t.match(after.ended, [{ outcome: 'expired' }])
})
