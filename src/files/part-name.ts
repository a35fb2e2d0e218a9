/**
 * Files that are being received: `part/<ref>.<machine>.<pid>.<started>.<n>`. The name says who writes, so that what a killed
 * process left is removed, and what another living one writes into the same folder is not.
 */
import { createHash } from 'node:crypto'
import { isProvablyGone, ownIdentity, type ProcessIdentity } from '../store/process-identity.js'

/** A writer that nobody can judge counts as gone when it has written nothing for so long. */
const STALE_MS = 10 * 60_000

let serial = 0

export function newPartName(ref: string): string {
  const own = ownIdentity()
  serial += 1
  return [ref, machineOf(own), own.pid, own.startedAt ?? '', serial].join('.')
}

/** The reference of the file that a part becomes. */
export const refOfPart = (name: string): string => name.slice(0, name.indexOf('.'))

/** Whether the writer of a part has ended, as far as its name and its age (in ms) tell. */
export function isAbandoned(name: string, ageMs: number): boolean {
  const parts = /^file_[\w-]{32}\.([0-9a-f]{8})\.(\d+)\.(\d*)\.\d+(?:\.json)?$/.exec(name)
  if (parts === null || ageMs > STALE_MS) return true
  const [, machine, pid, startedAt] = parts
  const own = ownIdentity()
  return machine === machineOf(own) && isProvablyGone({ ...own, pid: Number(pid), startedAt: startedAt === '' ? null : (startedAt ?? null) })
}

function machineOf({ boot, namespace }: ProcessIdentity): string {
  return createHash('sha256').update(`${boot}|${namespace}`).digest('hex').slice(0, 8)
}
