/** Who may write, who may command, and what is shown of a sender: the recorded pushes of WeChat and Feishu, changed a little. */
import t from 'tap'
import type { JsonObject } from '../../src/protocol/packet.js'
import { translatePush, type InboundRules, type TranslatedPush } from '../../src/translate/message-push.js'
import { recordedPacket } from '../legacy/recorded.js'
import { contextOf } from './golden.js'

type Fronted = 'wechat' | 'feishu'
const RECORDED = {
  wechat: { private: 'push: text', group: 'push: group' },
  feishu: { private: 'push: text', group: 'push: group, bot mentioned' },
} as const
const FRONTED: readonly Fronted[] = ['wechat', 'feishu']

function pushed(connector: Fronted, where: 'private' | 'group', more: JsonObject = {}, rules: Partial<InboundRules> = {}): TranslatedPush {
  return translatePush({ ...recordedPacket(connector, RECORDED[connector][where]).payload, ...more }, contextOf(connector, rules))
}
const fate = (push: TranslatedPush): string => (push.kind === 'not_forwarded' ? push.reason : push.kind)
const words = (push: TranslatedPush): string => (push.kind === 'message' ? push.body.text : `(${fate(push)})`)
const lineOf = (push: TranslatedPush): string => /\n\n\((.*)\)$/.exec(words(push))?.[1] ?? ''

for (const connector of FRONTED) {
  t.test(`${connector}: accept private takes no group`, async (t) => {
    t.equal(fate(pushed(connector, 'private', {}, { accept: 'private' })), 'message')
    t.equal(fate(pushed(connector, 'group', {}, { accept: 'private' })), 'not_accepted')
    t.equal(fate(pushed(connector, 'group', {}, { accept: 'all' })), 'message')
  })

  t.test(`${connector}: a push says whether it comes from a group`, async (t) => {
    t.equal(pushed(connector, 'private').privateChat, true)
    t.equal(pushed(connector, 'group').privateChat, false)
  })

  t.test(`${connector}: commands and approvals of a group are kept back, and say why`, async (t) => {
    for (const raw_text of ['/status north', '/stop', '@{approval:42} yes', '  /stop', '\n@{approval:42} yes', '\u200b/stop', '\u202a\u2066/stop', '\u0000/stop', '\u3164/stop', '\ufeff @{approval:42} yes']) {
      // Some of them must not stand in a report as they are.
      t.equal(fate(pushed(connector, 'group', { raw_text })), 'command', JSON.stringify(raw_text))
      t.equal(fate(pushed(connector, 'group', { raw_text }, { commands: 'none' })), 'command', JSON.stringify(raw_text))
      t.equal(words(pushed(connector, 'group', { raw_text }, { commands: 'all' })), raw_text, 'allowed by the configuration')
    }
    t.equal(fate(pushed(connector, 'group', { raw_text: 'what does /stop do?' })), 'message', 'not at the front')
  })

  t.test(`${connector}: private ones pass byte for byte`, async (t) => {
    for (const raw_text of ['/status  north', '/say  "a\tb"\n', '@{approval:42}  yes', '  /stop']) {
      t.equal(words(pushed(connector, 'private', { raw_text })), raw_text)
      t.equal(fate(pushed(connector, 'private', { raw_text }, { commands: 'none' })), 'command')
    }
  })

  t.test(`${connector}: no sender line in private, none unless it is asked for, none on a command`, async (t) => {
    t.equal(words(pushed(connector, 'private', { raw_text: 'hello' }, { senderLine: 'groups' })), 'hello')
    t.equal(words(pushed(connector, 'group', { raw_text: 'hello' })), 'hello')
    for (const raw_text of ['/status', '@{approval:42} yes']) {
      t.equal(words(pushed(connector, 'group', { raw_text }, { senderLine: 'groups', commands: 'all' })), raw_text)
    }
  })

  t.test(`${connector}: a name that is the id is shown as a tag, always the same for one person`, async (t) => {
    const group = (id: string, more: JsonObject = {}) =>
      pushed(connector, 'group', { raw_text: 'hello', from: id, sender_id: id, sender_name: id, display_name: id, ...more }, { senderLine: 'groups' })
    const line = lineOf(group('id_of_sam'))
    t.match(line, /^member [\w-]{6}$/)
    t.equal(lineOf(group('id_of_sam', { message_id: 'other' })), line)
    t.not(lineOf(group('id_of_eve')), line)
    t.equal(lineOf(group('id_of_sam', { sender_name: '', display_name: '' })), line, 'no name at all')
    t.equal(lineOf(group('id_of_sam', { sender_name: '', display_name: 'Sam' })), 'Sam')
    t.notMatch(words(group('id_of_sam')), /id_of_sam/)
  })

  t.test(`${connector}: a long name is cut between characters`, async (t) => {
    const line = lineOf(pushed(connector, 'group', { sender_name: `${'n'.repeat(99)}👩` }, { senderLine: 'groups' }))
    t.ok(line.isWellFormed())
    t.ok(line.length <= 100)
  })

  t.test(`${connector}: what has neither words nor files is empty`, async (t) => {
    for (const raw_text of ['', ' \n', undefined]) t.equal(fate(pushed(connector, 'private', { raw_text })), 'empty')
  })
}

t.test('wechat: a list of accepted ids names groups and people', async (t) => {
  const group = (accept: readonly string[]) => fate(pushed('wechat', 'group', {}, { accept }))
  t.equal(group(['g_family@im.chatroom']), 'message')
  t.equal(group(['u_bob@im.wechat']), 'message')
  t.equal(group(['u_alice@im.wechat', 'bot10000aa@im.bot', 'sess-g_family@im.chatroom']), 'not_accepted', 'neither receiver nor session')
  t.equal(fate(pushed('wechat', 'private', {}, { accept: ['u_alice@im.wechat'] })), 'message')
  t.equal(fate(pushed('wechat', 'private', {}, { accept: [''] })), 'not_accepted', 'an empty group_id is no id')
})

t.test('feishu: a list of accepted ids names chats and people', async (t) => {
  const group = (accept: readonly string[]) => fate(pushed('feishu', 'group', {}, { accept }))
  t.equal(group(['oc_group_ops']), 'message')
  t.equal(group(['ou_sam']), 'message')
  t.equal(group(['oc_p2p_ou_sam']), 'not_accepted')
  t.equal(fate(pushed('feishu', 'private', {}, { accept: ['oc_p2p_ou_sam'] })), 'message')
})

t.test('feishu: a reply_ref shows a group of whatever kind', async (t) => {
  t.equal(fate(pushed('feishu', 'group', { chat_type: 'a_new_kind' }, { accept: 'private' })), 'not_accepted')
  t.equal(fate(pushed('feishu', 'group', { chat_type: 'topic_group', reply: {} }, { accept: 'private' })), 'not_accepted')
  t.equal(fate(pushed('feishu', 'private', { reply: { reply_ref: '' } }, { accept: 'private' })), 'message')
})

t.test('feishu: a command stands behind the mention of the bot', async (t) => {
  for (const raw_text of ['@_user_1 /stop', '@_user_1  @_user_2 /stop', '@_user_1/stop', '@_user_1\n@{approval:42} yes', ' @_user_1 /stop']) {
    t.equal(fate(pushed('feishu', 'group', { raw_text })), 'command', raw_text)
  }
  t.equal(words(pushed('feishu', 'private', { raw_text: '@_user_1 /status  north' })), '/status  north')
  t.equal(words(pushed('feishu', 'group', { raw_text: '@_user_1 /status  north' }, { commands: 'all', senderLine: 'groups' })), '/status  north')
})

t.test('feishu: a mention takes no words with it', async (t) => {
  t.equal(words(pushed('feishu', 'group', { raw_text: '@_user_1你好 再见' })), '你好 再见')
  t.equal(words(pushed('feishu', 'group', { raw_text: '@_user_1, hello @_user_2' })), ', hello @_user_2')
  t.equal(fate(pushed('feishu', 'group', { raw_text: '@_user_1' })), 'empty', 'a bare mention')
  t.equal(fate(pushed('feishu', 'group', { raw_text: '@_user_1 @_user_2 ' })), 'empty')
})

t.test('feishu: the recorded group push shows no open id', async (t) => {
  const push = pushed('feishu', 'group', {}, { senderLine: 'groups' })
  t.match(words(push), /^status of line 4\?\n\n\(member [\w-]{6}\)$/)
  t.notMatch(words(push), /ou_sam/)
})

t.test('wechat: the recorded group push shows the name that the person gave', async (t) => {
  t.equal(words(pushed('wechat', 'group', {}, { senderLine: 'groups' })), '@bot hello all\n\n(Bob)')
})

t.test('wechat: where sender_id is not from, neither is shown', async (t) => {
  for (const name of ['id_a', 'id_b']) {
    const push = pushed('wechat', 'group', { from: 'id_a', sender_id: 'id_b', sender_name: name }, { senderLine: 'groups' })
    t.notMatch(words(push), /id_[ab]/)
  }
})

t.test('wechat: the account\'s own, unfinished and recalled messages are not the user\'s', async (t) => {
  const raw = (more: JsonObject): JsonObject => ({ raw_message: { ...(recordedPacket('wechat', 'push: text').payload['raw_message'] as JsonObject), ...more } })
  for (const where of ['private', 'group'] as const) {
    t.equal(fate(pushed('wechat', where, { message_type: 2 })), 'not_user_message', 'the bot itself')
    t.equal(fate(pushed('wechat', where, { message_state: 1 })), 'not_user_message', 'unfinished')
    t.equal(fate(pushed('wechat', where, { message_state: 3 })), 'not_user_message', 'in a state that nobody knows')
    t.equal(fate(pushed('wechat', where, raw({ delete_time_ms: 1_796_076_753_900 }))), 'not_user_message', 'recalled')
    t.equal(fate(pushed('wechat', where, raw({ delete_time_ms: 0 }))), 'message', 'not recalled')
    t.equal(fate(pushed('wechat', where, { message_type: 0, message_state: 0 })), 'message')
    t.equal(fate(pushed('wechat', where, { message_type: undefined, message_state: undefined, raw_message: undefined })), 'message', 'what is absent does not decide')
  }
})
