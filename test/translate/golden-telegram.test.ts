import t from 'tap'
import { readFileSync } from 'node:fs'
import { loadPresets } from '../../src/config/package-files.js'
import { decodePacket } from '../../src/protocol/packet.js'
import { messagePayload } from '../../src/protocol/im-v2.js'
import { toolOutcome } from '../../src/translate/tool-outcome.js'
import { translatePush } from '../../src/translate/message-push.js'
import { replyTarget } from '../../src/translate/reply-target.js'

const telegram = loadPresets().get('telegram')!
const generic = loadPresets().get('generic')!
const recorded = (name: string): { case: string; packet?: object; request?: { type: string }; body?: object }[] =>
  readFileSync(new URL(`../fixtures/packets/${name}.jsonl`, import.meta.url), 'utf8').trim().split('\n').map((line) => JSON.parse(line))
const rules = { accept: 'all', commands: 'private', senderLine: 'off' } as const
const context = { preset: telegram, rules, tools: new Map(), now: 1_796_076_800_000, freshId: () => 'fresh' }

interface Golden { readonly case: string; readonly v1: object; readonly v2: { readonly outcome: string; readonly message_id?: string; readonly payload?: object } }
const golden = JSON.parse(readFileSync(new URL('../fixtures/golden/telegram.json', import.meta.url), 'utf8')) as Golden[]

t.test('every recorded push of the Telegram connector has a golden pair', async (t) => {
  t.strictSame(golden.map((pair) => pair.case), recorded('telegram').map((line) => line.case).filter((name) => name.startsWith('push')))
})

for (const pair of golden) {
  t.test(`golden: ${pair.case}`, async (t) => {
    const decoded = decodePacket(JSON.stringify(pair.v1))
    t.ok(decoded.ok)
    if (!decoded.ok) return
    const push = translatePush(decoded.value.payload, context)
    if (pair.v2.outcome !== 'message') {
      t.equal(push.kind, 'files_only')
      t.equal(push.messageId, pair.v2.message_id)
      return
    }
    t.equal(push.kind, 'message')
    if (push.kind !== 'message') return
    t.strictSame(messagePayload({ messageId: push.messageId, text: push.body.text, createdAt: push.createdAt }), pair.v2.payload)
    t.match(push.target, { tool: 'telegram_message_send', textArgument: 'text', arguments: {}, proof: { sentWhen: { status: ['sent'] }, field: 'message_id', recipient: { field: 'chat_id', value: '880000042' } } })
  })
}

/** The table of docs/legacy.md "What an error text says about the outcome", for each recorded case. */
const CLASSES: Readonly<Record<string, string>> = {
  'tool: text sent': 'sent',
  'tool: text missing': 'permanent',
  'tool: unknown tool': 'permanent',
  'tool: unknown media_ref': 'permanent',
  'tool: platform answers HTTP 400': 'permanent',
  'tool: platform answers HTTP 401': 'auth',
  'tool: platform answers HTTP 403': 'permanent',
  'tool: platform answers HTTP 404': 'permanent',
  'tool: platform answers HTTP 413': 'permanent',
  'tool: platform answers HTTP 429': 'temporary',
  'tool: platform answers HTTP 500': 'in_doubt',
  'tool: platform answers HTTP 502': 'in_doubt',
  'tool: platform answers 200 with ok:false 429': 'temporary',
  'tool: connection reset before the effect': 'in_doubt',
  'tool: connection reset after the effect': 'in_doubt',
  'tool: answer is not JSON': 'in_doubt',
  'tool: platform answers too late': 'in_doubt',
  'tool on a channel that is not bound': 'permanent',
  'tool on a channel that is not open': 'permanent',
}

t.test('the outcome class of every recorded tool answer', async (t) => {
  const answers = recorded('telegram').filter((line) => line.case.startsWith('tool'))
  t.strictSame(answers.map((line) => line.case).sort(), Object.keys(CLASSES).sort())
  const { proof } = replyTarget({ chat_id: '880000042' }, telegram, new Map(), null, 0)!
  for (const line of answers) {
    const decoded = decodePacket(JSON.stringify(line.packet))
    if (!decoded.ok) throw new Error(line.case)
    const outcome = toolOutcome(decoded.value, proof, telegram)
    t.equal(outcome.class, CLASSES[line.case], line.case)
    t.notMatch(JSON.stringify(outcome), /AAinvented/, 'no bot token')
    t.equal(outcome.reopen, decoded.value.error?.code === 'connection_not_authenticated')
  }
})

t.test('every packet of all three connectors decodes, and its pushes translate without error', async (t) => {
  for (const name of ['telegram', 'wechat', 'feishu']) {
    for (const line of recorded(name)) {
      if (line.packet === undefined) continue
      const decoded = decodePacket(JSON.stringify(line.packet))
      t.ok(decoded.ok, `${name}: ${line.case}`)
      if (!decoded.ok || decoded.value.type !== 'message.push') continue
      const push = translatePush(decoded.value.payload, { ...context, preset: name === 'telegram' ? telegram : generic })
      t.match(push.messageId, /^.+$/)
      const text = push.kind === 'message' ? push.body.text : ''
      t.notMatch(text, /im-connector-reply|Answer with the tool/, 'never the wrapper')
    }
  }
})
