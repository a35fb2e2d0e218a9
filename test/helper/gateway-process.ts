/** The gateway as a process of its own, to be killed. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

export interface GatewayProcess {
  readonly ports: { readonly xagent: number; readonly admin: number }
  /** Everything that it has logged. */
  log(): string
  kill(signal: NodeJS.Signals): Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
}

/** Starts `serve` on a configuration and resolves when it listens. `t` kills it at the end if nothing else did. */
export async function gatewayProcess(t: { teardown(fn: () => void): void }, folder: string, config: string): Promise<GatewayProcess> {
  const file = join(folder, 'gateway.yaml')
  // Not into the folder that the tests run in.
  const files = /^files:/m.test(config) ? '' : `\nfiles: { dir: "${join(folder, 'files')}" }\n`
  await writeFile(file, config + files)
  const child: ChildProcess = spawn(process.execPath, ['--import=tsx', MAIN, 'serve', '--config', file], { stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => void (child.kill('SIGCONT'), child.kill('SIGKILL')))
  let text = ''
  const ports = await new Promise<{ xagent: number; admin: number }>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      text += chunk.toString()
      const line = text.split('\n').find((candidate) => candidate.includes('the gateway is listening'))
      if (line !== undefined) resolve(JSON.parse(line) as { xagent: number; admin: number })
    }
    child.stdout?.on('data', read)
    child.stderr?.on('data', read)
    child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}: ${text}`)))
  })
  return {
    ports,
    log: () => text,
    async kill(signal) {
      // These end nothing.
      if (signal === 'SIGSTOP' || signal === 'SIGCONT' || signal === 'SIGHUP') {
        child.kill(signal)
        return { code: null, signal: null }
      }
      const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
      child.kill(signal)
      const [code, by] = await ended
      return { code, signal: by }
    },
  }
}
