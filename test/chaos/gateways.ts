/** Two gateway processes on one Redis, killed, paused and started again; each connector is owned by one of them at a time. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { metricValue } from '../helper/stand.js'

const BUILT = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
const SOURCE = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
export const KEY = 'chaos-key'

export interface ChaosConnector {
  readonly name: string
  readonly url: string
}

/** One process, or none: a port of its own that stays the same over its lives. */
export class Instance {
  readonly folder = mkdtempSync(join(tmpdir(), 'xig-chaos-'))
  #child: ChildProcess | null = null
  #ports: { readonly xagent: number; readonly admin: number } | null = null
  /** Lines of level error and above that it wrote in all its lives. */
  readonly complaints: string[] = []

  constructor(private readonly redisUrl: string, private readonly connectors: readonly ChaosConnector[], private readonly leaseMs: number) {}

  get ports(): { readonly xagent: number; readonly admin: number } | null {
    return this.#child === null ? null : this.#ports
  }

  async start(): Promise<void> {
    if (this.#child !== null) return
    const file = join(this.folder, 'gateway.yaml')
    writeFileSync(file, [
      'listen: { host: 127.0.0.1, port: 0 }', 'admin: { port: 0 }', `xagent: { api_keys: [${KEY}] }`, `store: "${this.redisUrl}"`, `files: { dir: "${this.folder}/files" }`,
      `ownership: { lease: ${this.leaseMs}ms }`, 'delivery: { ack_timeout: 3s, outbound_wait: 5s, tool_timeout: 5s, backoff: { initial: 100ms, max: 2s } }',
      // No turn is waited for longer than a fault lasts, or little would move.
      'turns: { quiet: 1s, timeout: 20s }', 'limits: { packets_per_second: 100000 }', 'log: { level: info }',
      'connectors:', ...this.connectors.map(({ name, url }) => `  - { name: ${name}, url: "${url}", api_key: "${KEY}" }`),
    ].join('\n'))
    const program = existsSync(BUILT) ? [BUILT] : ['--import=tsx', SOURCE]
    const child = spawn(process.execPath, [...program, 'serve', '--config', file], { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child = child
    child.once('exit', () => { if (this.#child === child) this.#child = null })
    this.#ports = await new Promise((resolve, reject) => {
      let text = ''
      const read = (chunk: Buffer): void => {
        text += chunk.toString()
        const lines = text.split('\n')
        text = lines.pop() ?? ''
        for (const line of lines) {
          if (/"level":"(error|fatal)"/.test(line)) this.complaints.push(line)
          if (line.includes('the gateway is listening')) resolve(JSON.parse(line) as { xagent: number; admin: number })
        }
      }
      child.stdout?.on('data', read)
      child.stderr?.on('data', read)
      child.once('exit', (code) => reject(new Error(`a gateway ended with ${code}: ${text}`)))
    })
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    const child = this.#child
    this.#child = null
    if (child === null || child.exitCode !== null || child.signalCode !== null) return null
    const ended = once(child, 'exit') as Promise<[number | null]>
    child.kill('SIGCONT')
    child.kill(signal)
    return (await ended)[0]
  }

  pause(): void {
    this.#child?.kill('SIGSTOP')
  }

  goOn(): void {
    this.#child?.kill('SIGCONT')
  }

  /** Names of the connectors that this process serves now; none while it answers nothing. */
  async owned(): Promise<readonly string[]> {
    if (this.ports === null) return []
    const answers = await Promise.all(this.connectors.map(async ({ name }) => {
      const answer = await fetch(`http://127.0.0.1:${this.ports?.xagent}/${name}/connector-card.json`, { signal: AbortSignal.timeout(500) }).catch(() => null)
      await answer?.text().catch(() => '')
      return answer?.status === 200 ? [name] : []
    }))
    return answers.flat()
  }

  /** A series summed over the connectors that are owned here; 0 where it is not there. */
  async metric(name: string, labels: Record<string, string> = {}): Promise<number> {
    if (this.ports === null) return 0
    const text = await fetch(`http://127.0.0.1:${this.ports.admin}/metrics`, { signal: AbortSignal.timeout(2_000) }).then((answer) => answer.text(), () => '')
    return this.connectors.reduce((sum, connector) => sum + (metricValue(text, name, { connector: connector.name, ...labels }) || 0), 0)
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
