/** A channel of the core without sockets or a store: a map is the store, the clock is a number. */
import { step } from '../../src/core/channel.js'
import { newDeltaCache } from '../../src/core/delta.js'
import type { Effect, Ended, Transmit } from '../../src/core/effect.js'
import type { ChannelEvent, FinalFile } from '../../src/core/event.js'
import { newFlushGate } from '../../src/core/flush.js'
import { restoreInbound, restoreOutbound, settlePlaces } from '../../src/core/load.js'
import { restoreTurn } from '../../src/core/turn-record.js'
import { completedKey, outboundKey, type Change, type CompletedRecord, type DeadLetterRecord, type InboundRecord, type OutboundRecord, type TurnRecord } from '../../src/core/record.js'
import { newChannel, type Channel, type ChannelLimits, type Shared } from '../../src/core/state.js'
import type { ChannelId, LinkId, MessageId, PacketId } from '../../src/protocol/ids.js'
import type { AckVerdict } from '../../src/protocol/im-v2.js'
import type { ToolOutcome } from '../../src/translate/tool-outcome.js'
import { loadPresets } from '../../src/config/package-files.js'
import { cardTools } from '../../src/translate/reply-target.js'
import { translatePush } from '../../src/translate/message-push.js'
import { digest } from '../../src/translate/conversation.js'
import type { Preset } from '../../src/translate/preset.js'

const PRESETS = loadPresets()

export const T0 = Date.UTC(2026, 0, 1)
export const LINK = 'link_1' as LinkId
export const LIMITS: ChannelLimits = {
  ttlMs: 3_600_000, maxMessages: 1_000, maxBytes: 8 * 2 ** 20, overflow: 'evict_oldest', window: 1, ackTimeoutMs: 30_000,
  backoffInitialMs: 500, backoffMaxMs: 30_000, maxAttempts: 0, outboundQueue: 100, outboundWaitMs: 20_000,
  turns: { mode: 'on', quietMs: 10_000, timeoutMs: 300_000, maxMs: 900_000 }, deltas: { ttlMs: 600_000, maxStreams: 1_000, maxBytes: 2 ** 20 }, activityTimeoutMs: 30_000,
}

export interface RigOptions {
  readonly limits?: Partial<ChannelLimits>
  readonly preset?: string
  /** Changes of the preset. */
  readonly overrides?: Partial<Preset>
  /** Commits wait until `releaseCommits`. */
  readonly holdCommits?: boolean
  /** The store of an earlier rig: this one restores from it. */
  readonly store?: Map<string, unknown>
  readonly now?: number
  readonly maxPendingBytes?: number
  /** Whether files are carried; they are. */
  readonly files?: boolean
}

export class Rig {
  readonly channel: Channel
  readonly shared: Shared
  readonly store: Map<string, unknown>
  readonly effects: Effect[] = []
  now: number
  nextAt = Infinity
  holdCommits: boolean
  readonly files: boolean
  readonly #held: { changes: readonly Change[]; then: ChannelEvent | null }[] = []
  #number = 0

  constructor(options: RigOptions = {}, id = 'cch_1') {
    const preset = PRESETS.get(options.preset ?? 'telegram')
    if (preset === undefined) throw new Error('no such preset')
    this.now = options.now ?? T0
    this.holdCommits = options.holdCommits ?? false
    this.files = options.files ?? true
    this.store = options.store ?? new Map()
    this.channel = newChannel(id as ChannelId)
    this.channel.legacyOpen = true
    this.shared = {
      limits: { ...LIMITS, ...options.limits }, dialect: { preset: { ...preset, ...options.overrides }, tools: cardTools(null) },
      budget: { usedBytes: 0, maxBytes: options.maxPendingBytes ?? 2 ** 28 }, gate: newFlushGate(50), deltas: newDeltaCache(), fileLink: null, draining: false, run: 'run1', nextSeq: 1, nextDeadLetter: 0, jitterSeed: 1,
    }
    if (options.store !== undefined) this.#restore()
  }

  /** One event, and everything that follows from it by itself. */
  event(event: ChannelEvent): void {
    const { effects, nextAt } = step(this.channel, this.shared, event, this.now)
    this.nextAt = nextAt
    for (const effect of effects) this.#perform(effect)
  }

  /** Lets time pass; the channel is called at each moment that it named. */
  pass(ms: number): void {
    const end = this.now + ms
    for (let turns = 0; this.nextAt <= end; turns += 1) {
      if (turns > 100_000) throw new Error('the channel names moments for ever')
      this.now = Math.max(this.now, this.nextAt)
      this.event({ type: 'look' })
    }
    this.now = end
  }

  open(link: LinkId = LINK): void {
    this.event({ type: 'opened', link, as: this.channel.id })
  }

  leave(link: LinkId = LINK): void {
    this.event({ type: 'left', link })
  }

  /** A push of the Telegram connector's shape. */
  push(text: string, more: Record<string, unknown> = {}): string {
    this.#number += 1
    const payload = {
      profile: 'xagent.im.v1', event_kind: 'im.message.received', message_id: String(this.#number), account_hint: '@bot', chat_id: '77', chat_type: 'private',
      sender_id: '77', sender_name: 'Sam', raw_text: text, create_time_ms: this.now, reply: { tool_id: 'telegram_message_send' }, ...more,
    }
    const push = translatePush(payload, {
      preset: this.shared.dialect.preset, rules: { accept: 'all', commands: 'private', senderLine: 'off' }, tools: this.shared.dialect.tools, now: this.now, files: this.files, freshId: () => 'fresh',
    })
    const bytes = push.kind === 'not_forwarded' ? 0 : Buffer.byteLength(push.body.text)
    this.event({ type: 'pushed', push, bytes, takenAt: this.now })
    return push.messageId
  }

  /** Somebody writes in a channel of the WeChat connector's shape, alone or in a group. */
  wechat(from: string, text: string, more: Record<string, unknown> = {}): string {
    return this.push(text, {
      message_id: `m${this.#number + 1}`, from, sender_id: from, sender_name: '', group_id: '', message_type: 1, message_state: 2, context_token: `ctx-${from}-${this.#number + 1}`,
      reply: { tool_id: 'wechat_message_send' }, ...more,
    })
  }

  /** Somebody writes in a private chat of the Feishu connector's shape. */
  feishu(from: string, text: string, more: Record<string, unknown> = {}): string {
    return this.push(text, {
      message_id: `om_${this.#number + 1}`, chat_id: `oc_${from}`, chat_type: 'p2p', sender_id: from, sender_name: from, message_type: 'text', received_at: this.now,
      reply: { tool_id: 'feishu_message_send' }, ...more,
    })
  }

  activity(status: 'thinking' | 'tool' | 'idle'): void {
    this.event({ type: 'activity_received', status })
  }

  delta(messageId: string, sequence: number, text: string): void {
    this.event({ type: 'delta_received', from: { link: LINK, as: this.channel.id, packetId: `pkt_d_${messageId}_${sequence}` as PacketId }, messageId: messageId as MessageId, sequence, text })
  }

  replay(letter: DeadLetterRecord): void {
    this.event({ type: 'replayed', letter, text: (this.store.get(`body ${letter.bodyKey}`) as { text: string }).text })
  }

  ack(transmit: Transmit, verdict: Partial<AckVerdict> & { status: AckVerdict['status'] }): void {
    const full = { messageId: transmit.messageId, ...(verdict.status === 'rejected' && { code: 'later', retryable: true, protocolFault: false, saidRetryable: true }), ...verdict }
    this.event({ type: 'acked', replyTo: transmit.packetId, verdict: full as AckVerdict })
  }

  reject(transmit: Transmit, code: string, retryable: boolean): void {
    this.ack(transmit, { status: 'rejected', code, retryable, saidRetryable: retryable, protocolFault: false })
  }

  final(messageId: string, text: string, packetId = `pkt_${messageId}`, files: readonly FinalFile[] = []): void {
    this.event({
      type: 'final_received',
      final: { from: { link: LINK, as: this.channel.id, packetId: packetId as PacketId }, messageId: messageId as MessageId, text, files, contentHash: digest([text, ...files.map(({ stored }) => stored?.filename ?? '')]) },
    })
  }

  answerStep(messageId: string, step: number, outcome: Partial<ToolOutcome> & { class: ToolOutcome['class'] }): void {
    this.event({ type: 'step_answered', messageId: messageId as MessageId, step, outcome: { code: outcome.class, detail: null, reopen: false, ...outcome } })
  }

  releaseCommits(): void {
    this.holdCommits = false
    for (const { changes, then } of this.#held.splice(0)) this.#commit(changes, then)
  }

  of<Type extends Effect['type']>(type: Type): Extract<Effect, { type: Type }>[] {
    return this.effects.filter((effect): effect is Extract<Effect, { type: Type }> => effect.type === type)
  }

  get transmits(): Transmit[] {
    return this.of('transmit')
  }

  lastTransmit(): Transmit {
    const last = this.transmits.at(-1)
    if (last === undefined) throw new Error('nothing was transmitted')
    return last
  }

  get ended(): Ended[] {
    return this.of('ended')
  }

  /** Answers to finals, as "<packet> <status> [<code> <retryable>]". */
  get answers(): string[] {
    return this.of('answer').map(({ to, verdict }) => `${to.packetId} ${verdict.status}${verdict.status === 'rejected' ? ` ${verdict.code} ${verdict.retryable}` : ''}`)
  }

  /** Texts of the calls that were made, in order. */
  get calls(): string[] {
    return this.of('invoke').map((call) => String(call.arguments['text']))
  }

  deadLetters(): DeadLetterRecord[] {
    return this.records<DeadLetterRecord>('dead_letter')
  }

  records<T>(kind: string): T[] {
    return [...this.store].filter(([key]) => key.startsWith(`${kind} `)).sort(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value as T)
  }

  #perform(effect: Effect): void {
    this.effects.push(effect)
    switch (effect.type) {
      case 'find_completed':
        return this.event({ type: 'completed_found', arrival: effect.arrival, completed: (this.store.get(`completed ${completedKey(this.channel.id, effect.messageId)}`) as CompletedRecord | undefined) ?? null })
      case 'find_outbound':
        return this.event({ type: 'outbound_found', messageId: effect.messageId, purpose: effect.purpose, record: (this.store.get(`outbound ${outboundKey(this.channel.id, effect.messageId)}`) as OutboundRecord | undefined) ?? null })
      case 'commit':
        if (this.holdCommits) this.#held.push({ changes: effect.changes, then: effect.then })
        else this.#commit(effect.changes, effect.then)
        return
      case 'received': case 'transmit': case 'answer': case 'invoke': case 'reopen': case 'trim_completed': case 'wake': case 'ack_orphaned':
      case 'ack_fault': case 'ack_latency': case 'auth_doubtful': case 'ended':
      case 'replayed': case 'turn_ended': case 'refuse': case 'typing': case 'deviation': case 'overflow': case 'fetch_files': case 'refresh_files': case 'upload':
        return
    }
  }

  #commit(changes: readonly Change[], then: ChannelEvent | null): void {
    for (const change of changes) {
      if (change.op === 'put') this.store.set(`${change.kind} ${change.key}`, structuredClone(change.value))
      else this.store.delete(`${change.kind} ${change.key}`)
    }
    if (then !== null) this.event(then)
  }

  #restore(): void {
    for (const record of this.records<TurnRecord>('turn')) restoreTurn(this.channel, record, this.now)
    for (const record of this.records<InboundRecord>('inbound')) restoreInbound(this.channel, this.shared, record, this.now)
    settlePlaces(this.channel, this.now)
    for (const record of this.records<OutboundRecord>('outbound')) {
      const effects: Effect[] = []
      restoreOutbound(this.channel, this.shared, record, this.now, effects)
      for (const effect of effects) this.#perform(effect)
    }
    this.event({ type: 'look' })
  }
}
