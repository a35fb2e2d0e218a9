/** What the gateway stands on: store, folder of files, ports, certificates, clock (DESIGN §8 `doctor`). Nothing stays behind. */
import { X509Certificate, createPrivateKey } from 'node:crypto'
import { existsSync, readFileSync, statfsSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { isAbsolute, join, resolve } from 'node:path'
import type { GatewayConfig } from '../config/schema.js'
import { StoreError } from '../protocol/errors.js'
import { openStore } from '../store/open.js'
import { fault, fine, warning, type Finding } from './finding.js'

const DAY_MS = 86_400_000
const CERTIFICATE_WARNING_MS = 14 * DAY_MS
/** The gateway was written after this; a clock before it was never set. */
const EARLIEST = Date.UTC(2026, 0, 1)
const SLOW_DISK_MS = 100

export async function groundFindings(config: GatewayConfig, now: number): Promise<Finding[]> {
  return [
    clockFinding(now),
    await storeFinding(config, now),
    ...(await folderFindings(config)),
    await portFinding('listen', config.listen),
    await portFinding('admin', config.admin),
    ...certificateFindings('listen.tls', config.listen.tls, now),
    ...certificateFindings('admin.tls', config.admin.tls, now),
  ]
}

function clockFinding(now: number): Finding {
  const text = new Date(now).toISOString()
  return now >= EARLIEST ? fine('clock', text) : fault('clock', `${text} is in the past`, 'set the clock of this machine: expiry and the order of messages go by it')
}

/** A probe is written and removed; a store that does not exist yet is not made. */
async function storeFinding({ store: url, storeSync, redis }: GatewayConfig, now: number): Promise<Finding> {
  const name = url.replace(/\/\/[^@/]*@/, '//…@')
  if (url === 'memory:') return warning('store', 'memory: keeps waiting messages only as long as the process lives', 'use lmdb:<folder> where messages must survive a restart')
  const folder = url.startsWith('lmdb:') ? url.slice('lmdb:'.length) : null
  if (folder !== null && !existsSync(folder)) {
    const written = await probeFolder(folder)
    return 'problem' in written ? fault('store', `${name} cannot be made (${written.problem})`, 'name a folder that this user can write') : fine('store', `${name} is made at the first start`)
  }
  try {
    const store = openStore(url, { sync: storeSync, now: () => now, redis })
    try {
      await store.probe()
      return fine('store', `${name} can be written, ${storeSync ? 'and waits for the disk' : 'survives kill -9, not a power cut (store_sync: false)'}`)
    } finally {
      await store.close()
    }
  } catch (error) {
    return fault('store', `${name} cannot be used (${error instanceof StoreError ? error.message : messageOf(error)})`, 'check the folder or the server, its rights and its disk')
  }
}

async function folderFindings({ files, store }: GatewayConfig): Promise<Finding[]> {
  const folder = resolve(files.dir)
  const written = await probeFolder(folder)
  if ('problem' in written) return [fault('files.dir', `${files.dir} cannot be written (${written.problem})`, 'name a folder that this user can write')]
  const findings: Finding[] = []
  if (written.tookMs > SLOW_DISK_MS) findings.push(warning('files.dir', `writing 4 KiB to the disk took ${Math.round(written.tookMs)} ms`, 'every message with files waits for this disk: use a faster one'))
  const free = freeBytes(folder)
  findings.push(free !== null && free < files.maxTotalBytes
    ? warning('files.dir', `${Math.floor(free / 2 ** 20)} MiB are free, files.max_total_bytes allows ${Math.floor(files.maxTotalBytes / 2 ** 20)}`, 'make room, or lower files.max_total_bytes')
    : fine('files.dir', `${files.dir} can be written`))
  if (/^rediss?:/.test(store)) {
    findings.push(isAbsolute(files.dir)
      ? fine('files.dir', 'several instances find each other\'s files where this folder is one that they share')
      : warning('files.dir', `${files.dir} belongs to this instance alone`, 'name a folder that all instances share; else files of waiting messages are fetched again, and staged ones are found by one instance only'))
  }
  return findings
}

/** Writes, syncs and removes a file in the folder, or in the nearest one above it that exists. */
async function probeFolder(folder: string): Promise<{ readonly tookMs: number } | { readonly problem: string }> {
  const path = join(nearest(folder), `.xig-doctor-${process.pid}`)
  const startedAt = performance.now()
  try {
    const file = await open(path, 'wx', 0o600)
    try {
      await file.write(Buffer.alloc(4_096))
      await file.sync()
    } finally {
      await file.close()
      await rm(path, { force: true })
    }
    return { tookMs: performance.now() - startedAt }
  } catch (error) {
    return { problem: messageOf(error) }
  }
}

function nearest(folder: string): string {
  const whole = resolve(folder)
  return existsSync(whole) || resolve(whole, '..') === whole ? whole : nearest(resolve(whole, '..'))
}

function freeBytes(folder: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(nearest(folder))
    return bavail * bsize
  } catch {
    return null
  }
}

/** A port that is in use is most often that of the gateway itself, which runs. */
async function portFinding(subject: 'listen' | 'admin', { host, port }: { readonly host: string; readonly port: number }): Promise<Finding> {
  const place = `${host}:${port}`
  const problem = await new Promise<string | null>((resolvePromise) => {
    const server = createServer()
    server.once('error', (error) => resolvePromise(messageOf(error)))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolvePromise(null)))
  })
  if (problem === null) return fine(subject, `${place} is free`)
  return problem === 'EADDRINUSE'
    ? warning(subject, `${place} is in use`, 'if no gateway runs here, end what uses it, or choose another port')
    : fault(subject, `${place} cannot be listened on (${problem})`, 'choose an address of this machine, and a port that this user may use')
}

function certificateFindings(subject: string, tls: { readonly cert: string; readonly key: string } | null, now: number): Finding[] {
  if (tls === null) return []
  try {
    const certificate = new X509Certificate(readFileSync(tls.cert))
    if (!certificate.checkPrivateKey(createPrivateKey(readFileSync(tls.key)))) return [fault(subject, 'the key does not belong to the certificate', 'name the key that the certificate was made for')]
    return [expiryFinding(subject, Date.parse(certificate.validTo), now)]
  } catch (error) {
    return [fault(subject, `the certificate or its key cannot be read (${messageOf(error)})`, 'both must be PEM files')]
  }
}

/** Whether a certificate is valid for a while yet. */
export function expiryFinding(subject: string, validTo: number, now: number): Finding {
  const until = new Date(validTo).toISOString().slice(0, 10)
  if (validTo <= now) return fault(subject, `the certificate ended on ${until}`, 'renew it')
  return validTo - now < CERTIFICATE_WARNING_MS ? warning(subject, `the certificate ends on ${until}`, 'renew it') : fine(subject, `the certificate is valid until ${until}`)
}

export const messageOf = (error: unknown): string => (error instanceof Error ? ('code' in error && typeof error.code === 'string' ? error.code : error.message) : String(error))
