import t from 'tap'
import { replyTarget } from '../../src/translate/reply-target.js'
import { toolOutcome } from '../../src/translate/tool-outcome.js'
import { recordedPacket } from '../legacy/recorded.js'
import { checkOutcomes, checkPairs, contextOf, presetOf } from './golden.js'
import { translatePush } from '../../src/translate/message-push.js'

const wechat = presetOf('wechat')
const proofFor = (from: string) => {
  const proof = replyTarget({ from, context_token: 'ctx' }, wechat, new Map(), null, 0)?.proof
  if (proof === undefined) throw new Error('the rule holds')
  return proof
}

checkPairs(t, 'wechat')
// The recorded call named nobody, so it went to the account's owner.
checkOutcomes(t, 'wechat', proofFor('u_owner1@im.wechat'))

t.test('an answer that went to somebody else is in doubt, whatever its status says', async (t) => {
  const sent = recordedPacket('wechat', 'tool: text sent')
  t.match(toolOutcome(sent, proofFor('u_alice@im.wechat'), wechat), { class: 'in_doubt', code: 'other_recipient' })
})

t.test('without a context token, or without a sender, there is nobody to answer', async (t) => {
  const { payload } = recordedPacket('wechat', 'push: text')
  const target = (more: object) => replyTarget({ ...payload, ...more }, wechat, contextOf('wechat').tools, null, 0)
  t.not(target({}), null)
  t.equal(target({ context_token: '' }), null)
  t.equal(target({ from: '' }), null)
})

t.test('typing goes to whoever is answered, with the same token', async (t) => {
  const push = translatePush(recordedPacket('wechat', 'push: group').payload, contextOf('wechat'))
  t.match(push.kind === 'message' && push.target?.typing, {
    tool: 'wechat_typing', arguments: { to: 'u_bob@im.wechat', context_token: 'ctx-u_bob@im.wechat-3a7d03da' }, flag: 'typing',
  })
})

t.test('a person in private, the same person in a group, and another member are three conversations', async (t) => {
  const conversation = (more: object) => translatePush({ ...recordedPacket('wechat', 'push: group').payload, ...more }, contextOf('wechat')).conversation
  const keys = [conversation({}), conversation({ group_id: '' }), conversation({ from: 'u_eve@im.wechat', sender_id: 'u_eve@im.wechat' })]
  t.equal(new Set(keys).size, 3)
  t.equal(conversation({ session_id: 'another', context_token: 'another' }), keys[0], 'session and token do not part it')
})
