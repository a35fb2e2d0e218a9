/** Who owns a route: a fence number that only grows, a lease that runs out, and the holder's identity (DESIGN §7). */
import { StoreError } from '../protocol/errors.js'
import type { Fence } from './port.js'
import { isProvablyGone, type ProcessIdentity } from './process-identity.js'

export interface LeaseRecord {
  readonly number: number
  /** One per opened store; a process may open several. */
  readonly owner: string
  /** Wall clock, Unix ms; 0 = released. */
  readonly expiresAt: number
  readonly process: ProcessIdentity
}

/** The lease after `acquire`. Rejects with `lease_held` while another owner's lease runs and its process may still live. */
export function acquired(current: LeaseRecord | undefined, next: Omit<LeaseRecord, 'number'>, now: number): LeaseRecord {
  if (current !== undefined && current.owner !== next.owner && current.expiresAt > now && !isProvablyGone(current.process)) {
    throw new StoreError('lease_held', `another process holds the lease for ${Math.ceil(current.expiresAt - now)} ms more`)
  }
  return { ...next, number: (current?.number ?? 0) + 1 }
}

/** The lease after `renew`. */
export function renewed(current: LeaseRecord | undefined, fence: Fence, expiresAt: number): LeaseRecord {
  return { ...held(current, fence), expiresAt }
}

/** The lease that a fence proves; `fence_lost` when another owner has come since. */
export function held(current: LeaseRecord | undefined, fence: Fence): LeaseRecord {
  if (current === undefined || current.number !== fence.number) {
    throw new StoreError('fence_lost', `route ${fence.route}: fence ${fence.number} is not the latest: another process owns the route`)
  }
  return current
}
