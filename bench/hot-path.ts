/**
 * What the pure part of a message's way costs, against the least anybody could do with the same frame: JSON.parse of the
 * push and JSON.stringify of the answer. Ratios within one run; absolute figures are this machine's. `npm run bench`.
 */
import { step } from '../src/core/channel.js'
import { newDeltaCache } from '../src/core/delta.js'
import { newFlushGate } from '../src/core/flush.js'
import { newChannel, type Shared } from '../src/core/state.js'
import { loadPresets } from '../src/config/package-files.js'
import { decodePacket, encodePacket, type Packet } from '../src/protocol/packet.js'
import { messagePayload } from '../src/protocol/im-v2.js'
import type { ChannelId, LinkId, MessageId, PacketId } from '../src/protocol/ids.js'
import { translatePush } from '../src/translate/message-push.js'

const ROUNDS = 7
const MESSAGES = 20_000
const preset = loadPresets().get('telegram')
if (preset === undefined) throw new Error('the telegram preset is missing')

/** A frame as the Telegram connector sends it: the words, and thrice the words in a wrapper. */
function frame(n: number): string {
  const words = `Could you check the north pump? It has been running hot since this morning. (${n})`
  const wrapper = `Message from Sam on telegram.\nKind: text\nWords: ${words}\n\nAnswer with the tool telegram_message_send; load the Skill first.`
  return JSON.stringify({
    schema: 'xagent.connector.packet/v1', packet_id: `pkt_${n}`, connector_channel_id: 'cch_1', type: 'message.push', time: 1_796_076_741_113,
    payload: {
      profile: 'xagent.im.v1', event_kind: 'im.message.received', message_id: String(n), account_hint: '@bot / chat 880***042', chat_id: '880000042', chat_type: 'private',
      sender_id: '880000042', sender_name: 'Sam', raw_text: words, text: wrapper, content: wrapper, activation_message: wrapper, create_time_ms: 1_796_076_741_000,
      reply: { required: true, tool_id: 'telegram_message_send' }, skill: { skill_id: 'x', required_tool_ids: ['telegram_message_send'] },
    },
  })
}

const frames = Array.from({ length: MESSAGES }, (_, n) => frame(n))
const rules = { accept: 'all', commands: 'private', senderLine: 'off' } as const
const context = { preset, rules, tools: new Map(), now: 1_796_076_742_000, files: false, freshId: () => 'fresh' }
const decoded = frames.map((text) => decodePacket(text)).map((result) => { if (!result.ok) throw new Error('no packet'); return result.value })
const pushes = decoded.map((packet) => translatePush(packet.payload, context))

function newShared(): Shared {
  return {
    limits: {
      ttlMs: 3_600_000, maxMessages: 1_000, maxBytes: 2 ** 23, overflow: 'evict_oldest', window: 1, ackTimeoutMs: 30_000, backoffInitialMs: 500, backoffMaxMs: 30_000,
      maxAttempts: 0, outboundQueue: 100, outboundWaitMs: 20_000,
      turns: { mode: 'on', quietMs: 10_000, timeoutMs: 300_000, maxMs: 900_000 }, deltas: { ttlMs: 600_000, maxStreams: 1_000, maxBytes: 2 ** 20 }, activityTimeoutMs: 30_000,
    },
    dialect: { preset: preset as NonNullable<typeof preset>, tools: new Map() }, budget: { usedBytes: 0, maxBytes: 2 ** 30 }, gate: newFlushGate(50), deltas: newDeltaCache(), fileLink: null, draining: false, run: 'bench', nextSeq: 1, nextDeadLetter: 0, jitterSeed: 1,
  }
}

/** Every push is retained, transmitted and acked, as with an xAgent that accepts at once. */
function throughCore(): void {
  const channel = newChannel('cch_1' as ChannelId)
  const shared = newShared()
  step(channel, shared, { type: 'opened', link: 'l' as LinkId, as: channel.id }, 0)
  pushes.forEach((push, n) => {
    step(channel, shared, { type: 'pushed', push, bytes: 80, takenAt: n }, n)
    const { effects } = step(channel, shared, { type: 'completed_found', arrival: n, completed: null }, n)
    for (const effect of effects) {
      if (effect.type === 'transmit') step(channel, shared, { type: 'acked', replyTo: effect.packetId, verdict: { status: 'accepted', messageId: effect.messageId } }, n)
    }
  })
}

const answer: Packet = { packetId: 'pkt_x' as PacketId, channelId: 'cch_1', type: 'chat.message', time: 1, payload: messagePayload({ messageId: 'm_x' as MessageId, text: 'x'.repeat(80), createdAt: 1 }) }
const CONTESTANTS: readonly (readonly [string, () => void])[] = [
  ['parse + stringify', () => { for (const text of frames) { JSON.parse(text); JSON.stringify(answer) } }],
  ['decode', () => { for (const text of frames) decodePacket(text) }],
  ['translate', () => { for (const packet of decoded) translatePush(packet.payload, context) }],
  ['retain, deliver, ack', throughCore],
  ['encode', () => { for (const _ of frames) encodePacket(answer) }],
]

const times = new Map(CONTESTANTS.map(([name]) => [name, [] as number[]]))
for (let round = 0; round < ROUNDS; round += 1) {
  for (const [name, run] of CONTESTANTS) {
    const startedAt = performance.now()
    run()
    times.get(name)?.push(((performance.now() - startedAt) * 1_000) / MESSAGES)
  }
}
const median = (list: readonly number[]): number => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? NaN
const base = median(times.get('parse + stringify') ?? [])
process.stdout.write(`${frames[0]?.length} bytes a push, ${MESSAGES} pushes, median of ${ROUNDS} rounds\n`)
for (const [name, list] of times) process.stdout.write(`${name.padEnd(22)}${(median(list) / base).toFixed(2).padStart(6)} × parse+stringify  (${median(list).toFixed(1)} µs a message)\n`)
