import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const LOADER = import.meta.resolve('tsx')

/** Runs the command line in an empty folder, with nothing of this environment but the path. */
function start(args: readonly string[], env: Readonly<Record<string, string>> = {}, cwd = t.testdirName) {
  const child = spawn(process.execPath, ['--import', LOADER, MAIN, ...args], { cwd, env: { PATH: process.env['PATH'] ?? '', ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  const said = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => { said.out += text })
  child.stderr.setEncoding('utf8').on('data', (text: string) => { said.err += text })
  const closed = once(child, 'close').then(([code]) => ({ code: code as number | null, ...said }))
  return { child, said, closed }
}

const run = (...args: Parameters<typeof start>) => start(...args).closed

t.testdir({ 'good.yaml': 'delivery: { idle_close: 1h }\nconnectors:\n  - { name: telegram, url: "http://127.0.0.1:19091" }\n', 'bad.yaml': 'retention:\n  ttl: soon\n' })

t.test('help: of the whole, of a command, of a command that comes later', async (t) => {
  const [whole, serve, check, later] = await Promise.all([run(['--help']), run(['serve', '--help']), run(['check-config', '--help']), run(['why', '--help'])])
  for (const { code, err } of [whole, serve, check, later]) t.strictSame({ code, err }, { code: 0, err: '' })
  for (const name of ['serve', 'check-config', 'demo']) t.match(whole.out, name)
  t.match(serve.out, /--connector <name>=<url>/)
  t.match(check.out, /--config <file>/)
  t.match(later.out, /not yet in this version/i)
})

t.test('usage faults end with 2 and say what would be right', async (t) => {
  const [command, flag, later, takeOver, nothing, half] = await Promise.all([
    run(['sevre']), run(['serve', '--colour']), run(['dead-letters', 'list']), run(['--take-over']), run([]), run(['--connector', 'http://u:hunter22@h']),
  ])
  for (const { code, out } of [command, flag, later, takeOver, nothing, half]) t.strictSame({ code, out }, { code: 2, out: '' })
  t.match(command.err, /there is no command "sevre"/)
  t.match(command.err, /Usage:/)
  t.match(flag.err, /--colour/)
  t.match(later.err, /dead-letters is not yet in this version/)
  t.match(takeOver.err, /--take-over is not yet in this version/)
  t.match(nothing.err, /config\/gateway\.yaml/)
  t.match(half.err, /<name>=<url>/)
  t.notMatch(half.err, /hunter22/)
})

t.test('check-config: right, wrong, missing', async (t) => {
  const env = { XAGENT_API_KEY: 'hunter22' }
  const [good, bad, missing] = await Promise.all([
    run(['check-config', '--config', 'good.yaml'], env), run(['check-config', '--config', 'bad.yaml'], env), run(['check-config', '--config', 'none.yaml'], env),
  ])
  t.equal(good.code, 0)
  t.match(good.out, /telegram/)
  t.match(good.out, /good\.yaml:1: delivery\.idle_close: not yet in this version/)
  t.notMatch(good.out, /hunter22/)
  t.equal(bad.code, 2)
  t.match(bad.err, /^bad\.yaml:2: retention\.ttl: /m)
  t.match(bad.err, /^bad\.yaml:1: connectors: /m)
  t.equal(missing.code, 2)
  t.match(missing.err, /none\.yaml: cannot be read \(ENOENT\)/)
})

t.test('serve runs from the default file until SIGTERM, and ends with 0', async (t) => {
  const folder = t.testdir({ config: { 'gateway.yaml': 'listen: { host: 127.0.0.1, port: 0 }\nadmin: { port: 0 }\nstore: "memory:"\nfiles: { dir: files }\nconnectors: [{ name: a, url: "http://127.0.0.1:1" }]\n' } })
  const { child, said, closed } = start([], {}, folder)
  while (!said.out.includes('the gateway is listening')) await Promise.race([once(child.stdout, 'data'), closed.then(() => { throw new Error(said.err) })])
  child.kill('SIGTERM')
  t.equal((await closed).code, 0)
})
