import t from 'tap'
import { replyTarget } from '../../src/translate/reply-target.js'
import { translatePush } from '../../src/translate/message-push.js'
import { recordedPacket } from '../legacy/recorded.js'
import { checkOutcomes, checkPairs, contextOf, presetOf } from './golden.js'

const feishu = presetOf('feishu')
const PROOF = { sentWhen: {}, field: 'message_id', recipient: null }

checkPairs(t, 'feishu')
checkOutcomes(t, 'feishu', PROOF)

t.test('a message id is the whole proof: the tools do not say who got it', async (t) => {
  for (const name of ['push: text', 'push: group, bot mentioned']) {
    t.strictSame(replyTarget(recordedPacket('feishu', name).payload, feishu, contextOf('feishu').tools, null, 0)?.proof, PROOF, name)
  }
})

t.test('a reply by reference outlives a day, and names its message; the plain send is bound to the last private chat', async (t) => {
  const target = (name: string) => replyTarget(recordedPacket('feishu', name).payload, feishu, contextOf('feishu').tools, null, 1_000)
  t.match(target('push: group, bot mentioned'), { expiresAt: 1_000 + 7 * 86_400_000, perMessage: true, lastChatOnly: false, typing: null })
  t.match(target('push: text'), { arguments: {}, perMessage: false, lastChatOnly: true, typing: null })
})

t.test('a group message that lost its reference is not answered in the last private chat', async (t) => {
  const { payload } = recordedPacket('feishu', 'push: group, bot mentioned')
  t.equal(replyTarget({ ...payload, reply: { required: true, tool_id: 'feishu_message_reply' } }, feishu, contextOf('feishu').tools, null, 0), null)
})

t.test('each chat is a conversation, whoever writes in it', async (t) => {
  const conversation = (more: object) => translatePush({ ...recordedPacket('feishu', 'push: group, bot mentioned').payload, ...more }, contextOf('feishu')).conversation
  t.equal(conversation({}), 'oc_group_ops')
  t.equal(conversation({ sender_id: 'ou_eve' }), 'oc_group_ops')
  t.equal(conversation({ chat_id: 'oc_other' }), 'oc_other')
})
