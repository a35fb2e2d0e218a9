/** Backoff with jitter; randomness comes from a seed in the state, so that the core stays a function of its input. */
import type { Shared } from './state.js'

/** Exponential backoff, ms: doubles from `initial` to `max`, and waits between half of that and all of it. */
export function backoffMs(shared: Shared, failures: number): number {
  const { backoffInitialMs, backoffMaxMs } = shared.limits
  const ceiling = Math.min(backoffMaxMs, backoffInitialMs * 2 ** Math.min(30, Math.max(0, failures - 1)))
  return Math.round(ceiling * (0.5 + random(shared) / 2))
}

/** Next number in [0, 1) of a small linear congruential sequence: spread, not secrecy, is what jitter needs. */
function random(shared: Shared): number {
  shared.jitterSeed = (Math.imul(shared.jitterSeed, 1_664_525) + 1_013_904_223) >>> 0
  return shared.jitterSeed / 2 ** 32
}
