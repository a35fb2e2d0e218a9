/** What an outbound message answers (DESIGN §4 Turns rules 3, 7 and 9): decided when its id is first seen, and kept. */
import type { MessageId } from '../protocol/ids.js'
import { defaultTarget } from '../translate/reply-target.js'
import type { ReplyTarget } from './record.js'
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
  if (channel.conversations.size === 0 || shared.limits.turns.mode === 'off') {
    return { target: living(channel.target, now) ?? systemTarget(shared, now), turn: null, at: now }
  }
  const { turn } = channel
  const message = turn === null ? undefined : answered(turn)
  if (turn !== null && message !== undefined) return { target: living(message.target, now), turn: turn.number, at: now }
  return { target: lateTarget(channel, now) ?? onlyTarget(channel, now) ?? systemTarget(shared, now), turn: null, at: now }
}

/** After a likely or timed-out end, while nobody else has the word. */
function lateTarget(channel: Channel, now: number): ReplyTarget | null {
  const { lastTurn, turn } = channel
  if (lastTurn === null || (lastTurn.how !== 'likely' && lastTurn.how !== 'timeout')) return null
  return turn === null || turn.conversation === lastTurn.conversation ? living(lastTurn.target, now) : null
}

function onlyTarget(channel: Channel, now: number): ReplyTarget | null {
  return channel.conversations.size === 1 ? living(channel.target, now) : null
}

const systemTarget = (shared: Shared, now: number): ReplyTarget | null => defaultTarget(shared.dialect.preset, shared.dialect.tools, now)

/** A target lives for `target_ttl`. */
export function living(target: ReplyTarget | null, now: number): ReplyTarget | null {
  return target !== null && target.expiresAt > now ? target : null
}
