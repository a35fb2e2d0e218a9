/**
 * Runs the core of each channel: feeds it events one at a time, performs its effects in order, and calls again when it said
 * so. The only place where `step` is called.
 */
import { step } from '../core/channel.js'
import type { Effect, Ended, Transmit } from '../core/effect.js'
import type { ChannelEvent, SendFailure } from '../core/event.js'
import { completedKey, inboundBodyKey, outboundKey, type CompletedRecord, type FileItem, type MessageBody, type OutboundRecord } from '../core/record.js'
import { ackPayload, messagePayload } from '../protocol/im-v2.js'
import { StoreError, wireError } from '../protocol/errors.js'
import type { ChannelId, LinkId, PacketId } from '../protocol/ids.js'
import type { Packet } from '../protocol/packet.js'
import type { ChannelTable, Entry } from './channel-table.js'
import type { RouteContext } from './context.js'

/** A lookup that the store could not answer is asked again after this long. */
const LOOKUP_RETRY_MS = 500

/** What effects need from the rest of the route. */
export interface RunnerOutlets {
  /** Sends on an xAgent link; `closed` when it is gone. */
  send(link: LinkId, packet: Packet): 'queued' | 'full' | 'too_large' | 'closed'
  /** Runs one step of a final on the legacy side; answers come back as events. */
  invoke(entry: Entry, effect: Extract<Effect, { type: 'invoke' }>): void
  reopen(entry: Entry, effect: Extract<Effect, { type: 'reopen' }>): void
  ended(entry: Entry, ended: Ended): void
  authDoubtful(entry: Entry, reason: string): void
  /** The files of a message are to be had from the connector. */
  fetchFiles(entry: Entry, seq: number): void
  refreshFiles(entry: Entry, seq: number, fresh: readonly FileItem[]): void
  /** Uploads the file of a step; its end comes back as an event. */
  upload(entry: Entry, effect: Extract<Effect, { type: 'upload' }>): void
  /** Shows or hides "is typing"; its outcome changes nothing. */
  typing(entry: Entry, effect: Extract<Effect, { type: 'typing' }>): void
  /** A dead letter of that size is none any longer. */
  deadLetterGone(bytes: number): void
  trim(entry: Entry, kind: 'completed' | 'outbound'): void
}

export class ChannelRunner {
  readonly #queue: { entry: Entry; event: ChannelEvent }[] = []
  readonly #timers = new Map<ChannelId, { at: number; cancel: () => void }>()
  #running = false
  #stopped = false

  constructor(
    private readonly context: RouteContext,
    private readonly table: ChannelTable,
    private readonly outlets: RunnerOutlets,
  ) {}

  /** Gives an event to a channel; events that effects cause are handled after it, in order. */
  dispatch(entry: Entry, event: ChannelEvent): void {
    if (this.#stopped) return
    this.#queue.push({ entry, event })
    if (this.#running) return
    this.#running = true
    try {
      for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) this.#step(next.entry, next.event)
    } finally {
      this.#running = false
    }
  }

  /** Performs effects that did not come from an event (loading). */
  perform(entry: Entry, effects: readonly Effect[]): void {
    for (const effect of effects) this.#perform(entry, effect)
  }

  /** Forgets a channel that was removed. */
  forget(entry: Entry): void {
    this.#timers.get(entry.id)?.cancel()
    this.#timers.delete(entry.id)
  }

  stop(): void {
    this.#stopped = true
    this.#queue.length = 0
    for (const { cancel } of this.#timers.values()) cancel()
    this.#timers.clear()
  }

  /** A bug met by one event is said and stays there: other channels, and the process, go on. */
  #step(entry: Entry, event: ChannelEvent): void {
    try {
      const { effects, nextAt } = step(entry.channel, this.context.shared, event, this.context.now())
      for (const effect of effects) this.#perform(entry, effect)
      this.#lookAgain(entry, nextAt)
    } catch (error) {
      this.context.log.error({ err: error, channelId: entry.id, event: event.type }, 'an event of a channel could not be handled: this is a bug')
    }
  }

  /** A timer that is due earlier than needed is left alone: it finds nothing to do and is set anew, which is rarer. */
  #lookAgain(entry: Entry, at: number): void {
    const armed = this.#timers.get(entry.id)
    if (at === Infinity || (armed !== undefined && armed.at <= at)) return
    armed?.cancel()
    const cancel = this.context.clock.timer(Math.max(0, at - this.context.now()), () => {
      this.#timers.delete(entry.id)
      this.dispatch(entry, { type: 'look' })
    })
    this.#timers.set(entry.id, { at, cancel })
  }

  #perform(entry: Entry, effect: Effect): void {
    const { metrics, ledger, commits } = this.context
    switch (effect.type) {
      case 'received':
        ledger[effect.direction].received += 1
        return
      case 'find_completed':
        return this.#findCompleted(entry, effect)
      case 'find_outbound':
        return this.#findOutbound(entry, effect)
      case 'commit': {
        const { then } = effect
        return commits.push(effect.changes, then === null ? null : () => this.dispatch(entry, then))
      }
      case 'transmit':
        return this.#transmit(entry, effect)
      case 'answer':
        return this.#answer(effect)
      case 'invoke':
        return this.outlets.invoke(entry, effect)
      case 'reopen':
        return this.outlets.reopen(entry, effect)
      case 'trim_completed':
        metrics.overflowed('completed')
        return this.outlets.trim(entry, effect.kind)
      case 'wake': {
        const sleeper = this.table.find(effect.channelId)
        if (sleeper !== undefined) this.dispatch(sleeper, { type: 'flush_allowed' })
        return
      }
      case 'ack_orphaned':
        return metrics.ackOrphaned(effect.reason)
      case 'ack_fault':
        return metrics.deviations(['ack_without_retryable'])
      case 'ack_latency':
        return metrics.ackLatency(effect.ms)
      case 'replayed':
        ledger[effect.direction].replayed += 1
        return this.outlets.deadLetterGone(effect.deadLetterBytes)
      case 'turn_ended':
        metrics.turnEnded(effect.end)
        return this.context.log.debug({ channelId: entry.id, end: effect.end, lastedMs: effect.lastedMs, accepted: effect.accepted, finals: effect.finals }, 'a turn has ended')
      case 'refuse':
        return this.#refuse(effect)
      case 'fetch_files':
        return this.outlets.fetchFiles(entry, effect.seq)
      case 'refresh_files':
        return this.outlets.refreshFiles(entry, effect.seq, effect.files)
      case 'upload':
        return this.outlets.upload(entry, effect)
      case 'typing':
        return this.outlets.typing(entry, effect)
      case 'deviation':
        return metrics.deviations([effect.reason])
      case 'overflow':
        return metrics.overflowed(effect.kind)
      case 'auth_doubtful':
        return this.outlets.authDoubtful(entry, effect.reason ?? 'auth')
      case 'ended':
        if (effect.inLedger) ledger[effect.direction].ended += 1
        return this.outlets.ended(entry, effect)
    }
  }

  /** An unanswered lookup is asked again: a message is never called new because the store could not say (DESIGN §7). */
  #findCompleted(entry: Entry, effect: Extract<Effect, { type: 'find_completed' }>): void {
    this.#read(
      () => this.context.commits.read('completed', completedKey(entry.id, effect.messageId)),
      (value) => this.dispatch(entry, { type: 'completed_found', arrival: effect.arrival, completed: (value as CompletedRecord | undefined) ?? null }),
      () => this.context.clock.timer(LOOKUP_RETRY_MS, () => { if (!this.#stopped) this.#findCompleted(entry, effect) }),
    )
  }

  #findOutbound(entry: Entry, effect: Extract<Effect, { type: 'find_outbound' }>): void {
    this.#read(
      () => this.context.commits.read('outbound', outboundKey(entry.id, effect.messageId)),
      (value) => this.dispatch(entry, { type: 'outbound_found', messageId: effect.messageId, purpose: effect.purpose, record: (value as OutboundRecord | undefined) ?? null }),
      () => this.dispatch(entry, { type: 'lookup_failed', messageId: effect.messageId, purpose: effect.purpose }),
    )
  }

  #transmit(entry: Entry, effect: Transmit): void {
    const failed = (reason: SendFailure): void =>
      this.dispatch(entry, { type: 'send_failed', seq: effect.seq, reason, cause: effect.cause })
    this.#read(
      () => this.context.commits.read('body', inboundBodyKey(effect.seq)),
      (value) => {
        const body = value as MessageBody | undefined
        if (body === undefined) return failed('body_lost')
        const sent = this.outlets.send(effect.link, {
          packetId: effect.packetId, channelId: effect.as, type: 'chat.message', time: this.context.now(),
          payload: messagePayload({ messageId: effect.messageId, text: body.text, files: body.files, createdAt: effect.createdAt }),
        })
        if (sent !== 'queued') return failed(sent)
        if (effect.cause !== null) this.context.metrics.redelivered(effect.cause)
      },
      () => failed('store_unavailable'),
    )
  }

  #answer(effect: Extract<Effect, { type: 'answer' }>): void {
    this.outlets.send(effect.to.link, {
      packetId: this.context.newId('pkt_') as PacketId, replyTo: effect.to.packetId, channelId: effect.to.as, type: 'chat.message.ack',
      time: this.context.now(), payload: ackPayload(effect.messageId, effect.verdict),
    })
  }

  #refuse(effect: Extract<Effect, { type: 'refuse' }>): void {
    const { to, code } = effect
    this.outlets.send(to.link, {
      packetId: this.context.newId('pkt_') as PacketId, replyTo: to.packetId, channelId: to.as, type: 'error', time: this.context.now(), payload: {}, error: wireError(code),
    })
  }

  /** Calls `found` with what the store holds, at once where the store answers at once; `failed` when it cannot say. */
  #read(read: () => unknown, found: (value: unknown) => void, failed: () => void): void {
    const onError = (error: unknown): void => {
      if (!(error instanceof StoreError)) throw error
      // A record that cannot be read is set aside: it is as good as gone, and named in the log (DESIGN §7).
      if (error.code === 'record_unreadable') {
        this.context.log.error({ err: error }, 'a stored record cannot be read')
        return found(undefined)
      }
      failed()
    }
    let value: unknown
    try {
      value = read()
    } catch (error) {
      return onError(error)
    }
    if (value instanceof Promise) value.then(found, onError)
    else found(value)
  }
}
