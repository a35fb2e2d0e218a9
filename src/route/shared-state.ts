/** What the channels of a route share, as it is when the route begins. */
import { newDeltaCache } from '../core/delta.js'
import { newFlushGate } from '../core/flush.js'
import type { Shared } from '../core/state.js'
import type { RouteOptions } from './route.js'

export function newShared({ settings, presetFor, budget, flushChannels, newId, clock, files }: RouteOptions): Shared {
  const startedAt = Math.round(clock.wall())
  return {
    limits: settings.limits,
    dialect: { preset: presetFor(null), tools: new Map() },
    budget,
    draining: false,
    gate: newFlushGate(flushChannels),
    deltas: newDeltaCache(),
    fileLink: linkMaker(files?.publicUrl ?? null),
    run: newId('').toLowerCase().replace(/[^a-z0-9]/g, '').slice(0, 10),
    // Above every sequence of an earlier run, also of one whose records are gone.
    nextSeq: startedAt * 1_000,
    nextDeadLetter: 0,
    jitterSeed: startedAt >>> 0,
  }
}

/** A reference is unguessable and expires, so its link needs no key. */
function linkMaker(publicUrl: string | null): Shared['fileLink'] {
  return publicUrl === null ? null : (ref) => `${publicUrl.replace(/\/+$/, '')}/files/refs/${ref}`
}
