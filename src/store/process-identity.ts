/**
 * Tells whether the process that held a lease is certainly gone, so that a restart after kill -9 need not wait for the lease
 * to run out. Only a process of the same boot and the same pid namespace can be judged; everywhere else nobody knows.
 */
import { readFileSync, readlinkSync } from 'node:fs'

export interface ProcessIdentity {
  readonly pid: number
  /** Null where the system does not tell. */
  readonly boot: string | null
  readonly namespace: string | null
  /** Start time in the system's own units: a pid that was used again has another. */
  readonly startedAt: string | null
}

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, boot: boot(), namespace: namespace(), startedAt: startTime(process.pid) }
}

/** True only when it is certain that the process has ended. */
export function isProvablyGone(identity: ProcessIdentity): boolean {
  if (identity.boot === null || identity.namespace === null || identity.startedAt === null) return false
  if (boot() !== identity.boot || namespace() !== identity.namespace) return false
  const startedAt = startTime(identity.pid)
  return startedAt === null ? !runs(identity.pid) : startedAt !== identity.startedAt
}

function boot(): string | null {
  return tried(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())
}

function namespace(): string | null {
  return tried(() => readlinkSync('/proc/self/ns/pid'))
}

/** Field 22 of the process's stat; the name in field 2 may hold spaces and brackets. A zombie has ended. */
function startTime(pid: number): string | null {
  return tried(() => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? 'ended' : (fields[19] ?? null)
  })
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

function tried<T>(read: () => T | null): T | null {
  try {
    return read()
  } catch {
    return null
  }
}
