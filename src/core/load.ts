/** A route's stored records → channel states, and what must be done about what was under way (DESIGN §4, §5). */
import type { Effect } from './effect.js'
import { indexWaiting } from './inbound-end.js'
import { endInDoubtAtLoad } from './reply-end.js'
import { hold } from './reorder.js'
import { outboundKey, type InboundRecord, type OutboundRecord } from './record.js'
import type { Channel, Shared, Waiting } from './state.js'
import { restoredTarget } from './turn-record.js'
import type { MessageId } from '../protocol/ids.js'

/** A waiting message of an earlier run: same id, same end of retention, never longer than one ttl from now. */
export function restoreInbound(channel: Channel, shared: Shared, record: InboundRecord, now: number): void {
  const message: Waiting = {
    channelId: record.channelId, seq: record.seq, order: record.order, messageId: record.messageId, originalId: record.originalId,
    conversation: record.conversation, target: restoredTarget(record.target), contentHash: record.contentHash, bytes: record.bytes, createdAt: record.createdAt,
    takenAt: record.takenAt, expiresAt: Math.min(record.expiresAt, now + shared.limits.ttlMs), files: record.files, preparing: record.preparing, hasWords: record.hasWords,
    preset: record.preset, journal: [...record.journal], transmissions: 0, attempts: record.attempts, rejections: record.rejections, failures: 0,
    // The first transmission is not recorded, so nobody knows whether there was one.
    certainty: 'unknown', lastCode: record.lastCode, durable: true, inFlight: null, notBefore: 0, cause: 'restart', ended: false,
  }
  indexWaiting(channel, shared, message)
  hold(channel, shared, message)
  shared.nextSeq = Math.max(shared.nextSeq, record.seq + 1)
}

/**
 * To be called when all waiting messages are restored: a place in the turn whose message the store has no more of ends, as the
 * message itself would have. xAgent may have taken it, unless it was refused.
 */
export function settlePlaces({ turn, bySeq }: Channel, now: number): void {
  if (turn === null) return
  const lost = turn.messages.filter(({ state, seq }) => state !== 'accepted' && !bySeq.has(seq))
  turn.messages = turn.messages.filter((place) => !lost.includes(place))
  const unknown = lost.filter(({ unanswered }) => unanswered).length
  // Nobody knows when it was transmitted: no later than now.
  if (unknown > 0) turn.unknown = { count: (turn.unknown?.count ?? 0) + unknown, tick: 1, at: now }
}

/** A final of an earlier run. A step that was started and not answered is in doubt, unless its tool may be asked again. */
export function restoreOutbound(channel: Channel, shared: Shared, record: OutboundRecord, now: number, out: Effect[]): void {
  if (record.state === 'ended') return
  const started = record.steps.some((step) => step.state === 'started')
  if (started && record.target?.inDoubt !== 'retry') return endInDoubtAtLoad(channel, shared, record, now, out)
  deferInOrder(channel, record.messageId, Math.min(record.until, now + shared.limits.ttlMs))
  if (record.state === 'running') {
    const deferred: OutboundRecord = { ...record, state: 'deferred', steps: record.steps.map((step) => (step.state === 'started' ? { ...step, state: 'waiting' } : step)) }
    out.push({ type: 'commit', changes: [{ op: 'put', kind: 'outbound', key: outboundKey(channel.id, record.messageId), value: deferred }], then: null })
  }
}

/** Records are read in order of their keys, deadlines are looked at in order of time. */
function deferInOrder(channel: Channel, messageId: MessageId, until: number): void {
  const later = [...channel.deferred].filter(([, other]) => other > until)
  channel.deferred.set(messageId, until)
  for (const [id, other] of later) {
    channel.deferred.delete(id)
    channel.deferred.set(id, other)
  }
}
