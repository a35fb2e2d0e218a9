import t from 'tap'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { rig } from './store-rig.js'

const SCRIPT = fileURLToPath(new URL('./receive-forever.ts', import.meta.url))

t.test('kill -9 in the middle: the next open removes what is half, and every file that was there is whole', { timeout: 60_000 }, async (t) => {
  const made = await rig(t)
  for (const atLeast of [1, 20, 60]) {
    const child = spawn(process.execPath, ['--import=tsx', SCRIPT, made.dir], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => child.kill('SIGKILL'))
    const told: string[] = []
    for await (const ref of createInterface(child.stdout)) {
      told.push(ref)
      if (told.length >= atLeast) break
    }
    t.ok(readdirSync(join(made.dir, 'part')).length >= 1, 'a file is being received')
    // While that process lives, its unfinished file stays.
    await made.again({ now: () => Date.now() })
    t.ok(readdirSync(join(made.dir, 'part')).length >= 1)
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')

    const store = await made.again({ now: () => Date.now() })
    t.strictSame(readdirSync(join(made.dir, 'part')), [])
    for (const ref of told) t.equal(store.find(ref)?.byteSize, 10_000)
    const names = made.names()
    const refs = names.filter((name) => !name.endsWith('.json'))
    t.strictSame(names, refs.flatMap((ref) => [ref, `${ref}.json`]).sort())
    t.equal(store.usage.staged, refs.length * 10_000)
  }
})
