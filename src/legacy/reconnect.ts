/**
 * When a connector is dialled again (DESIGN §3 "Always listening"): quickly at first, because a v1 connector loses messages
 * while nobody listens, then with jittered backoff. Pure: time and chance are arguments.
 */
import type { LegacyTiming } from './timing.js'

/** A time without a steady link. */
export interface Outage {
  /** Monotonic ms. */
  readonly since: number
  /** Dials that failed in it. */
  readonly attempts: number
  /** Those of them that were followed by a backoff. */
  readonly backoffs: number
}

export interface Retry {
  readonly outage: Outage
  readonly delayMs: number
  /** The quick phase is over: nobody should wait for the next dial. */
  readonly backingOff: boolean
}

export interface FailedDial {
  /** Monotonic ms. */
  readonly now: number
  /** Refused for a reason that a moment's wait does not change: straight to the backoff. */
  readonly denied: boolean
  /** In [0, 1). */
  readonly random: number
}

export type ReconnectTiming = Pick<LegacyTiming, 'retryMs' | 'retryFastForMs' | 'backoffInitialMs' | 'backoffMaxMs'>

export function outageFrom(now: number): Outage {
  return { since: now, attempts: 0, backoffs: 0 }
}

/** What follows a failed dial: the next delay, between half of the backoff's ceiling and all of it once that has begun. */
export function retryAfter(outage: Outage, failed: FailedDial, timing: ReconnectTiming): Retry {
  const attempts = outage.attempts + 1
  if (!failed.denied && failed.now - outage.since < timing.retryFastForMs) {
    return { outage: { ...outage, attempts }, delayMs: timing.retryMs, backingOff: false }
  }
  const ceilingMs = Math.min(timing.backoffMaxMs, timing.backoffInitialMs * 2 ** Math.min(outage.backoffs, 30))
  return {
    outage: { ...outage, attempts, backoffs: outage.backoffs + 1 },
    delayMs: ceilingMs * (0.5 + failed.random / 2),
    backingOff: true,
  }
}
