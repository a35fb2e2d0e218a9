import t from 'tap'
import { replyTarget } from '../../src/translate/reply-target.js'
import { translatePush } from '../../src/translate/message-push.js'
import { CONNECTORS, recordedCases, recordedPacket } from '../legacy/recorded.js'
import { checkOutcomes, checkPairs, contextOf, northbound, presetOf } from './golden.js'

const PROOF = { sentWhen: { status: ['sent'] }, field: 'message_id', recipient: { field: 'chat_id', value: '880000042' } }

checkPairs(t, 'telegram')
checkOutcomes(t, 'telegram', PROOF)

t.test('an answer is proven by its status, its message id and the chat that was answered', async (t) => {
  t.strictSame(replyTarget({ chat_id: '880000042' }, presetOf('telegram'), new Map(), null, 0)?.proof, PROOF)
})

t.test('generic translates the pushes of all three connectors, too, and never forwards the wrapper', async (t) => {
  for (const connector of CONNECTORS) {
    for (const name of recordedCases(connector).filter((one) => one.startsWith('push'))) {
      const push = translatePush(recordedPacket(connector, name).payload, { ...contextOf(connector), preset: presetOf('generic') })
      t.match(push.messageId, /^.+$/)
      t.notMatch(JSON.stringify(northbound(push)), /im-connector-reply|Answer with the tool/, `${connector}: ${name}`)
    }
  }
})
