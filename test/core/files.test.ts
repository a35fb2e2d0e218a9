/** Files in the core: a message waits for its own, an answer sends them one by one (DESIGN §3 Files, §5). */
import t from 'tap'
import { Rig, type RigOptions } from '../helper/channel-rig.js'
import type { FinalFile, UploadResult } from '../../src/core/event.js'
import type { OutboundRecord } from '../../src/core/record.js'
import type { MessageId } from '../../src/protocol/ids.js'

const image = (ref: string) => ({ media_type: 'image', media_ref: ref, byte_size: 10 })
const staged = (ref: string, more: Partial<NonNullable<FinalFile['stored']>> = {}): FinalFile =>
  ({ ref, stored: { byteSize: 10, mimeType: 'image/png', filename: `${ref.replace(/_again$/, '')}.png`, ...more } })
const uploaded = (rig: Rig, step: number, result: UploadResult, id = 'f1'): void => rig.event({ type: 'uploaded', messageId: id as MessageId, step, result })
const settled = (rig: Rig, seq: number, ...lost: string[]): void => rig.event({ type: 'files_settled', seq, lost })
/** Everything that was called, as "tool argument". */
const calls = (rig: Rig): string[] => rig.of('invoke').map(({ tool, arguments: args }) => `${tool} ${String(args['text'] ?? args['media_ref'])}`)

function open(options: RigOptions = {}): Rig {
  const rig = new Rig(options)
  rig.open()
  return rig
}

t.test('a message waits for its files, and later ones wait behind it', async (t) => {
  const rig = open()
  const first = rig.push('look', { media: [image('r1'), image('r2')] })
  rig.push('and?')
  const [fetch] = rig.of('fetch_files')
  t.equal(rig.transmits.length, 0)
  settled(rig, fetch?.seq ?? 0)
  t.strictSame(rig.transmits.map(({ messageId }) => messageId), [first])
  t.match(rig.records('inbound')[0], { files: 2, preparing: 0 })
})

t.test('a lost file is noted, and the words go on', async (t) => {
  const rig = open()
  rig.push('look', { media: [image('r1')] })
  settled(rig, rig.of('fetch_files')[0]?.seq ?? 0, 'http_404')
  t.equal(rig.transmits.length, 1)
  t.match(rig.records('inbound'), [{ journal: [{ what: 'taken' }, { what: 'file_lost', note: 'http_404' }] }])
})

t.test('with no words and no file left a message is a dead letter', async (t) => {
  const rig = open()
  rig.push('', { media: [image('r1'), image('r2')] })
  settled(rig, rig.of('fetch_files')[0]?.seq ?? 0, 'http_404', 'file_too_large')
  t.match(rig.ended, [{ outcome: 'empty', reason: 'empty_message', code: 'http_404' }])
  t.equal(rig.transmits.length, 0)
  rig.push('', { media: [image('r3'), image('r4')] })
  settled(rig, rig.of('fetch_files')[1]?.seq ?? 0, 'http_404')
  t.equal(rig.transmits.length, 1, 'one file is something to say')
})

t.test('a re-push with new references is absorbed, and what is not there yet comes from them', async (t) => {
  const rig = open()
  const once = { message_id: 'same', raw_text: 'look' }
  rig.push('look', { ...once, media: [image('r1')] })
  rig.push('look', { ...once, media: [image('r1_new')] })
  t.match(rig.ended, [{ outcome: 'absorbed' }])
  t.match(rig.of('refresh_files'), [{ seq: rig.of('fetch_files')[0]?.seq, files: [{ sourceUrl: '/media/refs/r1_new' }] }])
  settled(rig, rig.of('fetch_files')[0]?.seq ?? 0)
  rig.push('look', { ...once, media: [image('r1_third')] })
  t.match(rig.of('refresh_files')[1], { files: [{ sourceUrl: '/media/refs/r1_third' }] }, 'also afterwards: one that was only remembered comes from there')
  rig.push('look', { message_id: 'other' })
  rig.push('look', { message_id: 'other' })
  t.equal(rig.of('refresh_files').length, 2, 'without files there is nothing to refresh')
})

t.test('a message that waits for its files expires like any other', async (t) => {
  const rig = open()
  rig.push('look', { media: [image('r1')] })
  rig.pass(3_600_000)
  t.match(rig.ended, [{ outcome: 'expired', certainty: 'certain' }])
  settled(rig, rig.of('fetch_files')[0]?.seq ?? 0)
  t.equal(rig.transmits.length, 0)
})

t.test('text first, then file by file: uploaded before its step is started, one ack for all', async (t) => {
  const rig = open()
  rig.final('f1', 'see these', 'pkt_1', [staged('a'), staged('b')])
  rig.answerStep('f1', 0, { class: 'sent' })
  t.match(rig.of('upload'), [{ step: 1, ref: 'a' }])
  t.match(rig.records<OutboundRecord>('outbound')[0]?.steps.map(({ state }) => state), ['done', 'waiting', 'waiting'], 'the text is known to be done while the file is uploaded, and nothing of the file has been started')
  uploaded(rig, 1, { ok: true, ref: 'media_a' })
  rig.answerStep('f1', 1, { class: 'sent' })
  uploaded(rig, 2, { ok: true, ref: 'media_b' })
  t.strictSame(rig.answers, [])
  rig.answerStep('f1', 2, { class: 'sent' })
  t.strictSame(calls(rig), ['telegram_message_send see these', 'telegram_message_send_media media_a', 'telegram_message_send_media media_b'])
  t.strictSame(rig.answers, ['pkt_1 accepted'])
})

t.test('text and three files: the second fails for now, the gateway dies, xAgent redelivers with new references', async (t) => {
  const before = open()
  const files = ['a', 'b', 'c'].map((name) => staged(name))
  before.final('f1', 'see these', 'pkt_1', files)
  before.answerStep('f1', 0, { class: 'sent' })
  uploaded(before, 1, { ok: true, ref: 'media_a' })
  before.answerStep('f1', 1, { class: 'sent' })
  uploaded(before, 2, { ok: false, temporary: true, code: 'ECONNRESET' })
  t.strictSame(before.answers, ['pkt_1 rejected target_temporarily_unavailable true'])
  const rig = new Rig({ store: new Map(before.store), now: before.now + 1_000 })
  rig.final('f1', 'see these', 'pkt_2', ['a', 'b', 'c'].map((name) => staged(`${name}_again`)))
  t.match(rig.of('upload'), [{ step: 2, ref: 'b_again' }], 'from the bytes that were uploaded again')
  uploaded(rig, 2, { ok: true, ref: 'media_b' })
  rig.answerStep('f1', 2, { class: 'sent' })
  uploaded(rig, 3, { ok: true, ref: 'media_c' })
  rig.answerStep('f1', 3, { class: 'sent' })
  t.strictSame([...calls(before), ...calls(rig)].map((call) => call.split(' ').at(-1)), ['these', 'media_a', 'media_b', 'media_c'])
  t.strictSame(rig.answers, ['pkt_2 accepted'])
})

t.test('killed during an upload nothing is in doubt', async (t) => {
  const before = open()
  before.final('f1', '', 'pkt_1', [staged('a')])
  t.equal(before.of('upload').length, 1)
  const rig = new Rig({ store: new Map(before.store), now: before.now })
  t.strictSame(rig.deadLetters(), [])
  rig.final('f1', '', 'pkt_2', [staged('a')])
  uploaded(rig, 0, { ok: true, ref: 'media_a' })
  rig.answerStep('f1', 0, { class: 'sent' })
  t.strictSame(rig.answers, ['pkt_2 accepted'])
})

t.test('all files are checked before anything is sent', async (t) => {
  for (const [file, code] of [
    [staged('big', { byteSize: 17 * 2 ** 20 }), 'file_refused'], [{ ref: 'gone', stored: null }, 'file_not_available'],
  ] as const) {
    const rig = open()
    rig.final('f1', 'see these', 'pkt_1', [staged('a'), file])
    t.strictSame(rig.answers, [`pkt_1 rejected ${code} false`])
    t.strictSame([rig.calls, rig.of('upload')], [[], []])
    t.match(rig.deadLetters(), [{ reason: 'rejected', code }])
  }
})

t.test('what the connector does not take goes as a link, where the preset says so and there is a public address', async (t) => {
  const document = staged('plan', { mimeType: 'application/pdf', filename: 'plan.pdf' })
  const rejected = open({ preset: 'feishu' })
  rejected.feishu('ann', 'send me the plan')
  rejected.final('f1', 'here', 'pkt_1', [document])
  t.strictSame(rejected.answers, ['pkt_1 rejected file_refused false'])

  const rig = open({ preset: 'feishu' })
  Object.assign(rig.shared, { fileLink: (ref: string) => `https://gateway.example/files/refs/${ref}` })
  rig.feishu('ann', 'send me the plan')
  rig.final('f1', 'here', 'pkt_1', [document, staged('a')])
  rig.answerStep('f1', 0, { class: 'sent' })
  rig.answerStep('f1', 1, { class: 'sent' })
  uploaded(rig, 2, { ok: false, temporary: false, code: 'http_415' })
  rig.answerStep('f1', 2, { class: 'sent' })
  t.strictSame(rig.calls, ['here', 'plan.pdf: https://gateway.example/files/refs/plan', 'https://gateway.example/files/refs/a'], 'also one that is refused at its upload')
  t.strictSame(rig.answers, ['pkt_1 accepted'])
})

t.test('a file that is refused at its upload ends the final: what was sent is known', async (t) => {
  const rig = open()
  rig.final('f1', 'see this', 'pkt_1', [staged('a')])
  rig.answerStep('f1', 0, { class: 'sent' })
  uploaded(rig, 1, { ok: false, temporary: false, code: 'http_413' })
  t.strictSame(rig.answers, ['pkt_1 rejected file_refused false'])
  t.match(rig.deadLetters(), [{ code: 'file_refused', message: 'http_413', certainty: 'certain', steps: [{ state: 'done' }, { state: 'waiting', file: { ref: 'a', uploadFields: {} } }] }])
})

t.test('the same final with identical files uploaded again is no conflict, with other files it is', async (t) => {
  const rig = open()
  rig.final('f1', '', 'pkt_1', [staged('a')])
  uploaded(rig, 0, { ok: true, ref: 'media_a' })
  rig.answerStep('f1', 0, { class: 'sent' })
  rig.final('f1', '', 'pkt_2', [staged('a_again')])
  rig.final('f1', '', 'pkt_3', [staged('other')])
  t.strictSame(rig.answers, ['pkt_1 accepted', 'pkt_2 duplicate', 'pkt_3 rejected message_id_conflict false'])
})

t.test('WeChat: a file is uploaded for the person who is answered, and sent to them alone', async (t) => {
  const rig = open({ preset: 'wechat' })
  rig.wechat('ann', 'send it')
  rig.wechat('bob', 'hello')
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  rig.final('f1', '', 'pkt_1', [staged('a')])
  t.match(rig.of('upload'), [{ fields: { recipient_ref: 'ann', reply_token: 'ctx-ann-1' } }])
  uploaded(rig, 0, { ok: true, ref: 'media_a' })
  t.match(rig.of('invoke'), [{ tool: 'wechat_message_send_media', arguments: { media_ref: 'media_a', recipient_ref: 'ann', context_token: 'ctx-ann-1' } }])
  rig.answerStep('f1', 0, { class: 'sent' })
  t.notMatch(JSON.stringify([...rig.store].filter(([key]) => key.startsWith('outbound '))), /ctx-ann/, 'tokens go with the end')
})

t.test('a replayed final sends its files again, to whom it was bound', async (t) => {
  const rig = open({ preset: 'wechat' })
  rig.wechat('ann', 'send it')
  rig.ack(rig.lastTransmit(), { status: 'accepted' })
  rig.final('f1', 'here', 'pkt_1', [staged('a')])
  rig.answerStep('f1', 0, { class: 'sent' })
  uploaded(rig, 1, { ok: true, ref: 'media_a' })
  rig.answerStep('f1', 1, { class: 'permanent' })
  const [letter] = rig.deadLetters()
  if (letter === undefined) throw new Error('there is a dead letter')
  rig.replay(letter)
  t.match(rig.of('upload').at(-1), { step: 1, ref: 'a', fields: { recipient_ref: 'ann' } })
  uploaded(rig, 1, { ok: true, ref: 'media_a2' })
  rig.answerStep('f1', 1, { class: 'sent' })
  t.strictSame(calls(rig), ['wechat_message_send here', 'wechat_message_send_media media_a', 'wechat_message_send_media media_a2'])
  t.strictSame(rig.deadLetters(), [])
})
