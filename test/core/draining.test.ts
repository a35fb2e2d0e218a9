/** The route ends: nothing new is sent, what runs comes to its end, and nobody is called without end (DESIGN §8 drain). */
import t from 'tap'
import { Rig } from '../helper/channel-rig.js'

const LONG = 'x'.repeat(4_500)

t.test('no message is transmitted any more; one in flight ends with its ack', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('one')
  rig.push('two')
  rig.shared.draining = true
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  t.match(rig.ended, [{ outcome: 'accepted' }])
  rig.push('three')
  rig.pass(120_000)
  t.equal(rig.transmits.length, 1)
  t.equal(rig.channel.bySeq.size, 2, 'two and three wait for the next run')
})

t.test('what was refused is not sent again, and no moment is named for it', async (t) => {
  const rig = new Rig()
  rig.open()
  rig.push('one')
  rig.reject(rig.lastTransmit(), 'later', true)
  rig.shared.draining = true
  rig.pass(600_000)
  t.equal(rig.transmits.length, 1)
  t.ok(rig.nextAt > rig.now, 'only its expiry is named')
})

t.test('a final that has begun goes on to its end; the next one does not begin', async (t) => {
  const rig = new Rig()
  rig.final('f1', LONG, 'pkt_1')
  rig.final('f2', 'next', 'pkt_2')
  rig.shared.draining = true
  rig.answerStep('f1', 0, { class: 'sent' })
  rig.answerStep('f1', 1, { class: 'sent' })
  t.strictSame(rig.answers, ['pkt_1 accepted'])
  t.equal(rig.calls.length, 2)
  const after = new Rig({ store: new Map(rig.store), now: rig.now })
  after.final('f2', 'next', 'pkt_3')
  after.answerStep('f2', 0, { class: 'sent' })
  t.strictSame(after.answers, ['pkt_3 accepted'])
})
