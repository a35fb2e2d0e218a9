/** What an outbound message answers (DESIGN §4 Turns rules 3, 7 and 9): decided when its id is first seen, and kept. */
import type { MessageId } from '../protocol/ids.js'
import { defaultTarget } from '../translate/reply-target.js'
import type { ReplyAddress, ReplyTarget } from './record.js'
import type { Binding, Channel, Shared } from './state.js'
import { answered } from './turn.js'

/** Bindings of streams without a final that one channel keeps, the latest ones. */
const MAX_BINDINGS = 2_000

/** The binding of an outbound id: the one it has, or the one that it gets now. */
export function bindingOf(channel: Channel, shared: Shared, messageId: MessageId, now: number): Binding {
  const known = channel.bindings.get(messageId)
  if (known !== undefined) return known
  const binding = bindNow(channel, shared, now)
  for (const [id, { at }] of channel.bindings) {
    if (at + shared.limits.ttlMs > now && channel.bindings.size < MAX_BINDINGS) break
    channel.bindings.delete(id)
  }
  channel.bindings.set(messageId, binding)
  return binding
}

/** Rule 3 in a turn; else rule 7: a late answer of the turn that ended last, or a message that answers nobody. */
export function bindNow(channel: Channel, shared: Shared, now: number): Binding {
  if (shared.limits.turns.mode === 'off' || (channel.conversations.size === 0 && channel.turn === null)) {
    return { target: living(channel, channel.target, now) ?? systemTarget(channel, shared, now), turn: null, at: now }
  }
  const { turn } = channel
  const message = turn === null ? undefined : answered(turn)
  if (turn !== null && message !== undefined) return { target: living(channel, message.target, now), turn: turn.number, at: now }
  return { target: lateTarget(channel, now) ?? onlyTarget(channel, now) ?? systemTarget(channel, shared, now), turn: null, at: now }
}

/** After a likely or timed-out end, while nobody else has the word. */
function lateTarget(channel: Channel, now: number): ReplyTarget | null {
  const { lastTurn, turn } = channel
  if (lastTurn === null || (lastTurn.how !== 'likely' && lastTurn.how !== 'timeout')) return null
  return turn === null || turn.conversation === lastTurn.conversation ? living(channel, lastTurn.target, now) : null
}

function onlyTarget(channel: Channel, now: number): ReplyTarget | null {
  return channel.conversations.size === 1 ? living(channel, channel.target, now) : null
}

/** An inferred tool does not say whom it reaches: where several people write, nobody can tell. */
function systemTarget({ conversations, epoch }: Channel, { dialect: { preset, tools } }: Shared, now: number): ReplyTarget | null {
  if (preset.defaultTarget === null && conversations.size > 1) return null
  return inEpoch(defaultTarget(preset, tools, now), epoch)
}

/** An address becomes a target of the account that was signed in when it came. */
export function inEpoch(address: ReplyAddress | null, epoch: number): ReplyTarget | null {
  return address === null ? null : { ...address, epoch }
}

/** A target lives for `target_ttl`, and only as long as its account has the channel. */
export function living(channel: Channel, target: ReplyTarget | null, now: number): ReplyTarget | null {
  return target !== null && target.expiresAt > now && isOfAccount(channel, target) ? target : null
}

/** Whether the account that a target belongs to still has the channel. */
export const isOfAccount = (channel: Channel, { epoch = 0 }: ReplyTarget): boolean => epoch === channel.epoch
