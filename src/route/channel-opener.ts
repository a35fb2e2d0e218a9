/**
 * Opening channels on both sides (DESIGN §3 Ids, Links): adoption of ids that xAgent brings, re-opening all at once after a
 * reconnect, and waiting a little rather than refusing while the main link is being dialled.
 */
import type { Reopened } from '../core/event.js'
import { readOpenAck, type OpenAck } from '../legacy/dialect.js'
import type { MainLink } from '../legacy/port.js'
import { err, ok, wireError, type Result } from '../protocol/errors.js'
import type { ChannelId, LegacyChannelId } from '../protocol/ids.js'
import type { JsonObject } from '../protocol/packet.js'
import { statusOf } from '../translate/descriptor.js'
import { putChannel, type Entry } from './channel-table.js'
import type { RouteContext } from './context.js'

/** xAgent gives up after repeated refusals, so an open waits this long for the legacy side. */
export const OPEN_PATIENCE_MS = 3_000
const OPEN_TIMEOUT_MS = 10_000
const REOPEN_AFTER_ERROR_MS = 2_000

export interface OpenerEvents {
  /** The legacy side has the channel open now, or not any more. */
  readonly onSouth: (entry: Entry, open: boolean) => void
  /** The connector has opened a channel, and described it unless that is null. */
  readonly onDescriptor: (entry: Entry, descriptor: JsonObject | null) => void
  /** No open is outstanding any more: pushes on unknown ids can be judged, a gap is over. */
  readonly onSettled: () => void
}

export class ChannelOpener {
  #outstanding = 0
  /** Opens of unknown ids that wait for the main link. */
  readonly #awaitingLink = new Set<() => void>()
  readonly #timers = new Set<() => void>()

  constructor(
    private readonly context: RouteContext,
    private readonly main: MainLink,
    private readonly events: OpenerEvents,
  ) {}

  get outstanding(): number {
    return this.#outstanding
  }

  /** Opens for xAgent: a known id at once or with the connector's fresh Descriptor, an unknown or empty one south first. */
  openFor(requested: ChannelId | '', done: (result: Result<Entry>) => void): void {
    const known = requested === '' ? undefined : this.context.table.find(requested)
    if (known !== undefined) return this.#openKnown(known, done)
    if (this.context.table.size >= this.context.settings.maxChannels) {
      return done(err(wireError('connector_channel_unavailable', `this connector has its limit of ${this.context.settings.maxChannels} channels`)))
    }
    if (this.main.up) return this.#openUnknown(requested, done)
    this.#whenLinkIsUp(() => this.#openUnknown(requested, done), () => done(err(wireError('connector_channel_unavailable'))))
  }

  /** Opens a known channel south. Callbacks get what came of it. */
  reopen(entry: Entry, done: (result: Reopened) => void = () => {}): void {
    entry.waiters.push(done)
    if (entry.opening) return
    entry.opening = true
    this.#request(entry.legacyId, (answer) => {
      entry.opening = false
      const open = answer !== null && this.#applyAck(entry, answer)
      this.events.onSouth(entry, open)
      const result = !open ? 'no_answer' : statusOf(entry.descriptor) === 'connected' ? 'connected' : 'signed_out'
      for (const waiter of entry.waiters.splice(0)) waiter(result)
      if (!open && this.main.up) this.#later(REOPEN_AFTER_ERROR_MS, () => { if (this.main.up) this.reopen(entry) })
    })
  }

  /** After hello: all channels at once, since every one that is not open loses messages (docs/legacy.md). */
  linkUp(): void {
    const resume = [...this.#awaitingLink]
    this.#awaitingLink.clear()
    this.#outstanding += 1
    for (const entry of this.context.table) this.reopen(entry)
    for (const go of resume) go()
    this.#answered()
  }

  stop(): void {
    for (const cancel of this.#timers) cancel()
    this.#timers.clear()
    this.#awaitingLink.clear()
  }

  #openKnown(entry: Entry, done: (result: Result<Entry>) => void): void {
    if (!entry.opening) return done(ok(entry))
    let answered = false
    const finish = (): void => {
      if (answered) return
      answered = true
      done(ok(entry))
    }
    entry.waiters.push(finish)
    this.#later(OPEN_PATIENCE_MS, finish)
  }

  #openUnknown(requested: ChannelId | '', done: (result: Result<Entry>) => void): void {
    this.#request(requested as string as LegacyChannelId | '', (answer) => {
      if (answer === null) return done(err(wireError('connector_channel_unavailable')))
      const entry = this.#bind(requested, answer.channelId)
      if (entry === null || !this.#applyAck(entry, answer)) return done(err(wireError('connector_channel_unavailable')))
      this.events.onSouth(entry, true)
      // xAgent keeps the id that it is told: it must not be forgotten here with the next crash.
      this.context.commits.push([], () => done(ok(entry)))
    })
  }

  /**
   * The connector kept the id that xAgent brought: the binding is adopted, and nobody need sign in again. Otherwise the
   * channel is new and gets an id of the gateway's own. Null when a connector answers with the id of a channel that somebody
   * else has: two people in one channel would get each other's answers.
   */
  #bind(requested: ChannelId | '', legacyId: LegacyChannelId): Entry | null {
    const { table } = this.context
    const kept = requested !== '' && (requested as string) === (legacyId as string)
    const known = table.findLegacy(legacyId)
    if (known !== undefined && !kept) {
      this.context.log.error({ channelId: known.id }, 'the connector opened a new channel under the id of another one: refused')
      return null
    }
    if (known !== undefined) {
      if (table.find(requested as ChannelId) === undefined) table.adopt(known, requested as ChannelId)
      return known
    }
    return table.add(kept ? requested : (this.context.newId('cch_') as ChannelId), legacyId)
  }

  /** Answers whether the channel is open now. */
  #applyAck(entry: Entry, { channelId, descriptor, deviations }: OpenAck): boolean {
    this.context.metrics.deviations(deviations)
    const holder = this.context.table.findLegacy(channelId)
    if (holder !== undefined && holder !== entry) {
      this.context.log.error({ channelId: entry.id, holder: holder.id }, 'the connector gave a channel the id of another one: it stays closed')
      return false
    }
    if (channelId !== entry.legacyId) {
      this.context.log.warn({ channelId: entry.id }, 'the connector has given the channel a new id')
      this.context.table.moveLegacy(entry, channelId)
    }
    this.context.commits.push([putChannel(entry)], null)
    this.events.onDescriptor(entry, descriptor?.body ?? null)
    return true
  }

  #request(legacyId: LegacyChannelId | '', done: (answer: OpenAck | null) => void): void {
    this.#outstanding += 1
    this.main.request('channel.open', legacyId, {}, OPEN_TIMEOUT_MS, (answer) => {
      const ack = answer.ok ? readOpenAck(answer.value, legacyId) : null
      if (ack?.ok !== true) this.context.log.warn({ failure: ack?.error.code.slice(0, 64) ?? 'no_answer' }, 'a channel could not be opened on the connector')
      done(ack?.ok === true ? ack.value : null)
      this.#answered()
    })
  }

  #answered(): void {
    this.#outstanding -= 1
    if (this.#outstanding === 0) this.events.onSettled()
  }

  #whenLinkIsUp(go: () => void, giveUp: () => void): void {
    const cancel = this.#later(OPEN_PATIENCE_MS, () => {
      this.#awaitingLink.delete(resume)
      giveUp()
    })
    const resume = (): void => {
      cancel()
      go()
    }
    this.#awaitingLink.add(resume)
  }

  #later(ms: number, fn: () => void): () => void {
    const cancel = this.context.clock.timer(ms, () => {
      this.#timers.delete(cancel)
      fn()
    })
    this.#timers.add(cancel)
    return () => {
      this.#timers.delete(cancel)
      cancel()
    }
  }
}
