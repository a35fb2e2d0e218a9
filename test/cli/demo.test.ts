import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Scrape } from '../../src/cli/demo-metrics.js'
import { wantsColours } from '../../src/cli/demo-screen.js'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

function demo(...flags: string[]): ChildProcessByStdio<Writable, Readable, null> {
  const env = { ...process.env, NO_COLOR: '1' }
  return spawn(process.execPath, ['--import=tsx', MAIN, 'demo', ...flags], { env, stdio: ['pipe', 'pipe', 'inherit'] })
}

/** Resolves with the first match in what is printed. */
async function printed(output: Readable, pattern: RegExp): Promise<RegExpExecArray> {
  let seen = ''
  for await (const chunk of output.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    seen += chunk.toString()
    const match = pattern.exec(seen)
    if (match !== null) return match
  }
  throw new Error(`the demo ended without ${String(pattern)}:\n${seen}`)
}

void t.test('plays every scene as scripted, says so in a summary, and ends by itself with 0', async (t) => {
  const run = demo()
  const [output, [code]] = await Promise.all([text(run.stdout), once(run, 'exit')])
  t.equal(code, 0)
  for (const scene of ['1  A message', '2  An ack is lost', '3  xAgent is away', '4  The connector restarts', '5  xAgent refuses']) {
    t.ok(output.includes(`\n${scene}`), scene)
  }
  t.match(output, /ledger imbalance +0\n/)
  t.match(output, /Everything went as scripted\./)
  t.notOk(output.includes('\u001b'), 'NO_COLOR is respected')
})

void t.test('--keep runs on with its URLs, takes typed lines, and ends at a signal', async (t) => {
  const run = demo('--keep')
  t.teardown(() => run.kill('SIGKILL'))
  const [, metricsUrl = ''] = await printed(run.stdout, /Metrics: +(http:\S+)/)
  t.equal((await Scrape.of(metricsUrl)).sum('legacy_up'), 1)
  run.stdin.write('typed by a person\n')
  await printed(run.stdout, /telegram_message_send → chat \d+: "You said: typed by a person"/)
  run.kill('SIGTERM')
  t.same(await once(run, 'exit'), [0, null])
})

void t.test('colours are for terminals, unless NO_COLOR is set or FORCE_COLOR asks for them', async (t) => {
  t.equal(wantsColours({}, true), true)
  t.equal(wantsColours({}, false), false)
  t.equal(wantsColours({ NO_COLOR: '1' }, true), false)
  t.equal(wantsColours({ FORCE_COLOR: '1' }, false), true)
  t.equal(wantsColours({ FORCE_COLOR: '1', NO_COLOR: '1' }, false), false)
})
