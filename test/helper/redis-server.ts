/** A Redis server of a test's own: a free port, a folder of its own, ended by its process id. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Teardown } from './stand.js'

/** False, or why tests that need a server are skipped. */
export const NO_REDIS: string | false = spawnSync('redis-server', ['--version']).status === 0 ? false : 'redis-server is not installed'

export interface RedisServer {
  readonly url: string
  readonly port: number
  /** Ends it without a word to anybody, and starts it anew with what it had written to its disk. */
  restart(): Promise<void>
  stop(signal?: NodeJS.Signals): Promise<void>
  start(): Promise<void>
  /** Freezes the process: its sockets stay, and answer nothing. */
  pause(): void
  goOn(): void
}

/** Writes are on its disk before they are answered. `flags` are further options of the server. */
export async function redisServer(t: Teardown, flags: readonly string[] = []): Promise<RedisServer> {
  const dir = mkdtempSync(join(tmpdir(), 'xig-redis-'))
  const port = await freePort()
  let child: ChildProcess | null = null
  const start = async (): Promise<void> => {
    child = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--appendonly', 'yes', '--appendfsync', 'always', ...flags], { stdio: ['ignore', 'pipe', 'ignore'] })
    await ready(child)
  }
  const stop = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    const running = child
    child = null
    if (running === null || running.exitCode !== null || running.signalCode !== null) return
    running.kill('SIGCONT')
    running.kill(signal)
    await once(running, 'exit')
  }
  await start()
  t.teardown(async () => {
    await stop()
    rmSync(dir, { recursive: true, force: true })
  })
  return {
    url: `redis://127.0.0.1:${port}`, port, start, stop,
    restart: async () => { await stop(); await start() },
    pause: () => void child?.kill('SIGSTOP'),
    goOn: () => void child?.kill('SIGCONT'),
  }
}

async function ready(child: ChildProcess): Promise<void> {
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`redis-server ended with ${code}: ${said.slice(-500)}`)))
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      said += text
      if (said.includes('Ready to accept connections')) resolve()
    })
  })
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}
