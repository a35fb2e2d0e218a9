import t from 'tap'
import { FORBIDDEN_FIELDS, parseAck, parseActivity, parseDelta, parseFinal } from '../../src/protocol/im-v2.js'

const refused = (result: { ok: boolean; error?: { code: string } }) => !result.ok && result.error?.code === 'invalid_packet'

t.test('chat.activity: three states, tool_name with tool alone (v2 §8)', async (t) => {
  t.strictSame(parseActivity({ status: 'thinking' }), { ok: true, value: { status: 'thinking', toolName: null } })
  t.strictSame(parseActivity({ status: 'idle', more: 1 }), { ok: true, value: { status: 'idle', toolName: null } })
  t.strictSame(parseActivity({ status: 'tool', tool_name: 'web_search' }), { ok: true, value: { status: 'tool', toolName: 'web_search' } })
  t.ok(refused(parseActivity({ status: 'tool' })))
  t.ok(refused(parseActivity({ status: 'thinking', tool_name: 'x' })))
  t.ok(refused(parseActivity({ status: 'tool', tool_name: 'é'.repeat(129) })), 'at most 256 bytes')
  t.ok(parseActivity({ status: 'tool', tool_name: 'é'.repeat(128) }).ok)
  t.ok(refused(parseActivity({ status: 'busy' })))
})

t.test('chat.message.delta: text only, sequence from 1 (v2 §6)', async (t) => {
  t.ok(parseDelta({ message_id: 'a', sequence: 1, text: 'x' }).ok)
  for (const wrong of [{ sequence: 0 }, { sequence: 1.5 }, { sequence: '1' }, { text: undefined }, { message_id: '' }]) t.ok(refused(parseDelta({ message_id: 'a', sequence: 1, text: 'x', ...wrong })))
})

t.test('chat.message: text or files, listed kinds, ids of bounded length (v2 §5)', async (t) => {
  t.match(parseFinal({ message_id: 'a', text: 'x', created_at: 1 }), { ok: true, value: { text: 'x', files: [], unknownFields: [] } })
  t.match(parseFinal({ message_id: 'a', files: [{ type: 'image', file_ref: 'f' }] }), { ok: true, value: { text: '', files: [{ type: 'image', fileRef: 'f' }] } })
  for (const wrong of [{}, { text: '' }, { text: '  ' }, { files: [] }, { text: 7 }, { files: [{ type: 'sticker', file_ref: 'f' }] }, { files: [{ type: 'image' }] }, { text: 'x', created_at: 'now' }]) {
    t.ok(refused(parseFinal({ message_id: 'a', ...wrong })), JSON.stringify(wrong))
  }
  t.ok(refused(parseFinal({ text: 'x' })))
  t.ok(refused(parseFinal({ message_id: 'a'.repeat(1_025), text: 'x' })))
  t.match(parseFinal({ message_id: '__proto__', text: 'x', mood: 1 }), { ok: true, value: { messageId: '__proto__', unknownFields: ['mood'] } })
})

t.test('forbidden fields are refused wherever they stand (v2 §3)', async (t) => {
  for (const field of FORBIDDEN_FIELDS) {
    t.match(parseFinal({ message_id: 'a', text: 'x', [field]: null }), { ok: false, error: { message: new RegExp(field) } })
    t.match(parseFinal({ message_id: 'a', files: [{ type: 'image', file_ref: 'f', [field]: 1 }] }), { ok: false, error: { message: new RegExp(field) } })
    t.ok(refused(parseDelta({ message_id: 'a', sequence: 1, text: 'x', [field]: 1 })))
    t.ok(refused(parseActivity({ status: 'idle', [field]: 1 })))
  }
})

t.test('chat.message.ack: a rejection needs a code; without boolean retryable it is a fault and temporary (v2 §7)', async (t) => {
  t.strictSame(parseAck({ message_id: 'a', status: 'accepted' }), { ok: true, value: { status: 'accepted', messageId: 'a' } })
  t.match(parseAck({ message_id: 'a', status: 'rejected', code: 'x', retryable: false }), { ok: true, value: { retryable: false, protocolFault: false } })
  t.match(parseAck({ message_id: 'a', status: 'rejected', code: 'x' }), { ok: true, value: { retryable: true, protocolFault: true } })
  t.match(parseAck({ message_id: 'a', status: 'rejected', code: 'x', retryable: 'yes' }), { ok: true, value: { retryable: true, protocolFault: true } })
  for (const wrong of [{ status: 'rejected' }, { status: 'ok' }, {}, { status: 'accepted', message_id: 7 }]) t.ok(refused(parseAck({ message_id: 'a', ...wrong })), JSON.stringify(wrong))
})
