import t from 'tap'
import { Rig } from '../helper/channel-rig.js'

t.test('a push with the same id and content is absorbed while it waits and after it was delivered', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('hello', { message_id: '1' })
  rig.push('hello', { message_id: '1' })
  t.equal(rig.transmits.length, 1)
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  rig.push('hello', { message_id: '1', received_at: 5 })
  t.strictSame(rig.ended.map(({ outcome }) => outcome), ['absorbed', 'accepted', 'absorbed'])
  t.equal(rig.transmits.length, 1)
  t.equal(rig.of('received').length, 3)
})

t.test('a push with the same id and other content is a conflict: visible, not forwarded', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('hello', { message_id: '1' })
  rig.push('other words', { message_id: '1' })
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  rig.push('third words', { message_id: '1' })
  t.equal(rig.transmits.length, 1)
  t.strictSame(rig.ended.map(({ outcome }) => outcome), ['conflict', 'accepted', 'conflict'])
  t.strictSame(rig.deadLetters().map(({ reason }) => reason), ['conflict', 'conflict'])
})

t.test('the same message with other references of its files is a duplicate, not a conflict', async (t) => {
  const rig = new Rig()
  const media = (ref: string) => ({ message_id: '1', media: [{ media_type: 'image', media_ref: ref, filename: `${ref}.jpg`, byte_size: 70 }] })
  rig.push('see this', media('r1'))
  rig.push('see this', media('r2'))
  t.strictSame(rig.ended.map(({ outcome }) => outcome), ['absorbed'])
  rig.push('see this', { message_id: '1', media: [{ media_type: 'image', media_ref: 'r3', byte_size: 71 }] })
  t.equal(rig.ended[1]?.outcome, 'conflict')
})

t.test('an expired, evicted or refused message leaves a completed id; an empty or not forwarded one does not', async (t) => {
  const rig = new Rig({ limits: { maxMessages: 1 } })
  rig.push('a', { message_id: '1' })
  rig.push('b', { message_id: '2' })
  t.match(rig.ended, [{ outcome: 'evicted' }])
  rig.push('a', { message_id: '1' })
  t.equal(rig.ended[1]?.outcome, 'absorbed')
  rig.push('  ', { message_id: '3' })
  rig.push('later with words', { message_id: '3' })
  t.strictSame(rig.ended.map(({ outcome }) => outcome), ['evicted', 'absorbed', 'empty', 'evicted'])
})

t.test('a completed id is forgotten after the ttl: then the same push is a new message', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('hello', { message_id: '1' })
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  rig.pass(3_600_001)
  rig.push('hello', { message_id: '1' })
  t.equal(rig.transmits.length, 2)
})

t.test('the 1001st message in a full channel evicts the oldest not in flight as capacity_exceeded (v1 §8)', async (t) => {
  const rig = new Rig()
  rig.open()
  const ids = Array.from({ length: 1_000 }, (_, i) => rig.push(`message ${i}`))
  t.equal(rig.ended.length, 0)
  rig.push('one too many')
  t.match(rig.ended, [{ outcome: 'evicted', reason: 'capacity_exceeded', messageId: ids[1] }])
  t.equal(rig.ended.length, 1)
  t.equal(rig.transmits[0]?.messageId, ids[0], 'the oldest is in flight and stays')
  t.match(rig.deadLetters(), [{ reason: 'capacity_exceeded', certainty: 'certain' }])
})

t.test('refuse_newest ends the newcomer instead', async (t) => {
  const rig = new Rig({ limits: { maxMessages: 2, overflow: 'refuse_newest' } })
  rig.push('a')
  rig.push('b')
  const newest = rig.push('c')
  t.match(rig.ended, [{ outcome: 'evicted', reason: 'capacity_exceeded', messageId: newest }])
})

t.test('bytes are a capacity of their own, and one message larger than it does not empty the queue', async (t) => {
  const rig = new Rig({ limits: { maxBytes: 10 } })
  const first = rig.push('12345')
  rig.push('67890')
  const large = rig.push('x'.repeat(11))
  t.match(rig.ended, [{ messageId: large, outcome: 'evicted' }])
  rig.push('abc')
  t.equal(rig.ended[1]?.messageId, first)
  t.equal(rig.channel.waitingBytes, 8)
  t.equal(rig.shared.budget.usedBytes, 8)
})

t.test('the process has a limit over all channels', async (t) => {
  const rig = new Rig({ maxPendingBytes: 6 })
  rig.push('1234')
  rig.push('5678')
  t.match(rig.ended, [{ outcome: 'evicted', reason: 'capacity_exceeded' }])
})

t.test('what is expired makes room before anything is evicted (v1 §8)', async (t) => {
  const rig = new Rig({ limits: { maxMessages: 1 } })
  rig.push('a')
  rig.now += 3_600_000
  rig.push('b')
  t.strictSame(rig.ended.map(({ outcome }) => outcome), ['expired'])
})

t.test('pushes are decided in the order in which they came, also when lookups answer late', async (t) => {
  const rig = new Rig()
  const push = rig.push.bind(rig)
  // Lookups are held back by hand: the rig answers them at once otherwise.
  const answers: (() => void)[] = []
  const event = rig.event.bind(rig)
  rig.event = (next) => (next.type === 'completed_found' ? void answers.push(() => event(next)) : event(next))
  const ids = [push('a'), push('b')]
  answers[1]?.()
  t.equal(rig.channel.waiting.length, 0, 'the second waits for the first')
  answers[0]?.()
  t.strictSame(rig.channel.waiting.map(({ messageId }) => messageId), ids)
})

t.test('nothing left to say is a dead letter, and files alone are one of their own where none are carried', async (t) => {
  const rig = new Rig({ files: false })
  rig.push('')
  rig.push('', { media: [{ media_type: 'image', media_ref: 'r1' }] })
  t.match(rig.ended, [{ outcome: 'empty', reason: 'empty_message' }, { outcome: 'files_not_supported', reason: 'files_not_supported' }])
  t.strictSame(rig.deadLetters().map(({ reason }) => reason), ['empty_message', 'files_not_supported'])
})

t.test('the record of a message carries both ids, conversation, target, files and its journal', async (t) => {
  const rig = new Rig({ preset: 'generic' })
  rig.push('hello', { chat_id: 'room', media: [{ type: 'image', media_ref: 'r1' }], reply: { tool_id: 'send', reply_ref: 'ref' } })
  t.match(rig.records('inbound'), [{
    v: 1, messageId: '1', originalId: null, conversation: 'room', files: 1, preparing: 1, attempts: 0, certainty: 'certain', preset: 'generic@1',
    target: { tool: 'send', arguments: { reply_ref: 'ref' }, textArgument: 'text', perMessage: true }, journal: [{ at: 0, what: 'taken' }],
  }])
  t.match(rig.records('body'), [{ text: 'hello', files: [{ type: 'image', sourceUrl: '/media/refs/r1', state: 'preparing' }] }])
})
