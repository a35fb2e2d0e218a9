/** Packets from the connector: pushes become messages, Descriptors are taken over, everything unlisted is filtered. */
import { deadLetter } from '../core/dead-letter.js'
import type { Ended } from '../core/effect.js'
import { readDescriptor } from '../legacy/legacy-descriptor.js'
import type { LegacyChannelId } from '../protocol/ids.js'
import { IM_V1 } from '../protocol/im-v1.js'
import type { JsonObject, Packet } from '../protocol/packet.js'
import { translatePush, type TranslatedPush } from '../translate/message-push.js'
import type { ChannelRunner } from './channel-runner.js'
import type { Entry } from './channel-table.js'
import type { RouteContext } from './context.js'
import type { InferenceLog } from './inference-log.js'
import type { V2Relay } from './v2-relay.js'

/** Pushes on unknown ids that wait for outstanding opens; beyond that they end at once. */
const MAX_HELD = 1_000

export interface SouthOutlets {
  /** Opens that are not answered yet: a push on an unknown id may belong to one of them. */
  readonly opensOutstanding: () => number
  readonly takeDescriptor: (entry: Entry, descriptor: JsonObject) => void
  readonly ended: (ended: Ended) => void
  readonly inference: InferenceLog
}

interface Held {
  readonly packet: Packet
  readonly takenAt: number
}

export class SouthPackets {
  #held: Held[] = []

  constructor(
    private readonly context: RouteContext,
    private readonly runner: ChannelRunner,
    private readonly relay: V2Relay,
    private readonly outlets: SouthOutlets,
  ) {}

  /** Pushes that wait for an open to be answered: received, and pending in the ledger. */
  get held(): number {
    return this.#held.length
  }

  handle(packet: Packet): void {
    const { metrics } = this.context
    metrics.packet('legacy', packet.type)
    const reason = this.#negotiatedFor(packet).refusal(packet.type, 'connector_to_xagent')
    if (reason !== null) return metrics.filtered('inbound', reason)
    switch (packet.type) {
      case 'message.push': return this.#push(packet)
      case 'chat.message': return this.relay.messageFromConnector(packet)
      case 'chat.message.ack': return this.relay.ackFromConnector(packet)
      case 'connection.descriptor.push': return this.#descriptor(packet)
      case 'error': {
        if (this.relay.errorFromConnector(packet)) return
        const code = packet.error?.code ?? 'unknown'
        return this.context.log.warn({ code: code.slice(0, 64) }, 'the connector sent an error that answers no request')
      }
      // Listed, but it answers nothing that still waits: a late ack, a pong, progress of a call that ended.
      default: return
    }
  }

  /** Every open is answered: what is still unknown belongs to nobody. */
  settle(): void {
    for (const { packet, takenAt } of this.#held.splice(0)) this.#take(packet, takenAt, true)
  }

  #push(packet: Packet): void {
    this.#take(packet, this.context.now(), false)
  }

  #take(packet: Packet, takenAt: number, settled: boolean): void {
    const entry = packet.channelId === undefined ? undefined : this.context.table.findLegacy(packet.channelId as LegacyChannelId)
    if (entry === undefined && !settled && this.outlets.opensOutstanding() > 0 && this.#held.length < MAX_HELD) {
      this.#held.push({ packet, takenAt })
      return
    }
    const push = this.#translate(packet, takenAt)
    if (entry === undefined) return this.#unknownChannel(push, takenAt)
    this.runner.dispatch(entry, { type: 'pushed', push, bytes: sizeOf(push), takenAt })
  }

  #translate(packet: Packet, takenAt: number): TranslatedPush {
    const { context } = this
    const startedAt = context.clock.monotonic()
    const { preset, tools } = context.shared.dialect
    const push = translatePush(packet.payload, { preset, rules: context.settings.rules, tools, files: context.files !== null, now: takenAt, freshId: () => context.newId('') })
    context.metrics.translated(context.clock.monotonic() - startedAt)
    context.metrics.deviations(push.deviations)
    this.outlets.inference.push(preset, packet.payload, push)
    return push
  }

  /** A push that no channel takes ends here, with a dead letter, since nobody can open its channel later (DESIGN §3). */
  #unknownChannel(push: TranslatedPush, takenAt: number): void {
    const { ledger, shared, commits } = this.context
    const now = this.context.now()
    ledger.inbound.received += 1
    ledger.inbound.ended += 1
    const forwarded = push.kind !== 'not_forwarded'
    const dead = !forwarded ? null : deadLetter(shared, {
      direction: 'inbound', reason: 'unknown_channel', code: null, message: null, certainty: 'certain', channelId: null, messageId: push.messageId,
      originalId: push.originalId, conversation: push.conversation, takenAt, expiresAt: takenAt + shared.limits.ttlMs, attempts: 0, steps: [], target: null,
      journal: [{ at: 0, what: 'taken' }, { at: now - takenAt, what: 'ended', note: 'unknown_channel' }], textBytes: sizeOf(push), body: { put: push.body },
    }, now)
    if (dead !== null) commits.push(dead.changes, null)
    this.outlets.ended({
      type: 'ended', direction: 'inbound', outcome: forwarded ? 'unknown_channel' : 'not_forwarded', reason: forwarded ? 'unknown_channel' : null,
      code: forwarded ? null : push.reason, detail: null, certainty: 'certain', messageId: push.messageId, originalId: push.originalId, attempts: 0,
      ageMs: now - takenAt, inLedger: true, deadLetterId: dead?.record.id ?? null, deadLetterBytes: dead?.record.bytes ?? 0,
    })
  }

  #descriptor(packet: Packet): void {
    const descriptor = readDescriptor(packet.payload['connection_descriptor'])
    const entry = packet.channelId === undefined ? undefined : this.context.table.findLegacy(packet.channelId as LegacyChannelId)
    if (descriptor === null || entry === undefined) return
    this.context.metrics.deviations(descriptor.deviations)
    this.outlets.takeDescriptor(entry, descriptor.body)
  }

  /** What the channel's own Descriptor declares, before one is known what its Card does (DESIGN §6). */
  #negotiatedFor(packet: Packet) {
    const entry = packet.channelId === undefined ? undefined : this.context.table.findLegacy(packet.channelId as LegacyChannelId)
    // A Descriptor that names no profile says nothing against the Card's.
    const declared = readDescriptor(entry?.descriptor)?.profiles ?? []
    const spoken = this.context.card()?.spoken ?? IM_V1
    return this.context.catalog.negotiate(declared.length === 0 ? [spoken] : declared.filter((profile) => profile === spoken), 'im')
  }
}

/** What a message costs of the capacity: its words, and a little for each file. */
function sizeOf(push: TranslatedPush): number {
  if (push.kind === 'not_forwarded') return 0
  return Buffer.byteLength(push.body.text) + 200 * push.body.files.length
}
