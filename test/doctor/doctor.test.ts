/** `doctor`: what it finds on a good setup and on broken ones, and what it leaves behind: nothing. */
import t from 'tap'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadPresets } from '../../src/config/package-files.js'
import { connectorFindings } from '../../src/doctor/connector.js'
import { findingText, type Finding } from '../../src/doctor/finding.js'
import { expiryFinding, groundFindings } from '../../src/doctor/ground.js'
import { systemClock } from '../../src/ops/clock.js'
import { SimConnector, type SimConnectorOptions } from '../../src/sim/connector.js'
import { SimV2Connector } from '../../src/sim/v2-connector.js'
import { configOf } from '../config/parsed.js'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const LOADER = import.meta.resolve('tsx')
const KEY = 'connector-key-of-a-test'
const NOW = Date.now()
const DAY = 86_400_000

const said = (findings: readonly Finding[]): string => findings.map(findingText).join('\n')
const worst = (findings: readonly Finding[]): string[] => findings.filter(({ level }) => level !== 'ok').map(({ level, subject }) => `${level} ${subject}`)

async function simulated(kind: NonNullable<SimConnectorOptions['kind']>, more: string = ''): Promise<Finding[]> {
  const connector = new SimConnector({ kind, apiKey: KEY })
  await connector.start()
  t.teardown(() => connector.stop())
  return asked(connector.url, more)
}

function asked(url: string, more = '', key = KEY): Promise<Finding[]> {
  const config = configOf(`connectors:\n  - name: a\n    url: ${url}\n    api_key: "${key}"\n${more}`)
  const [connector] = config.connectors
  if (connector === undefined) throw new Error('no connector')
  return connectorFindings(connector, config, loadPresets(), systemClock())
}

t.test('the public connectors: their preset, their reply tools, and what they lose', async (t) => {
  const telegram = await simulated('telegram')
  t.match(said(telegram), /preset telegram[^]*answers go through telegram_message_send\n[^]*is lost: keep it running/)
  t.strictSame(worst(telegram), ['warning a'], 'what it loses is the only thing to know')
  t.match(said(await simulated('wechat')), /preset wechat[^]*waits with the connector/)
  t.match(said(await simulated('feishu')), /files that the connector refuses are to go as links, and listen\.public_url is not set/)
  t.match(said(await simulated('generic')), /no preset knows this Card[^]*else example_message_send; files are refused/)
})

t.test('a preset that does not fit its Card is a fault', async (t) => {
  const findings = await simulated('telegram', '    preset: wechat\n')
  t.match(findings.filter(({ level }) => level === 'fault'), [{ subject: 'a', text: /lists no tool wechat_message_send/, todo: /preset/ }])
})

t.test('a connector of v2 is relayed, with its own Skill', async (t) => {
  const acme = new SimV2Connector({ cardId: 'im.acme', apiKey: KEY, skill: '---\nname: connector-im-acme\n---\n# Acme\n' })
  await acme.start()
  t.teardown(() => acme.stop())
  const findings = await asked(acme.url)
  t.match(said(findings), /protocol 3\.0, speaks xagent\.im\.v2: it is relayed\n[^]*Skill connector-im-acme of the connector/)
  t.strictSame(worst(findings), [])
})

t.test('a wrong key, nobody there, and something that is no connector', async (t) => {
  const connector = new SimConnector({ kind: 'telegram', apiKey: KEY })
  await connector.start()
  t.teardown(() => connector.stop())
  t.match(await asked(connector.url, '', 'another-key'), [{ level: 'fault', text: /does not answer \/health/, todo: /api_key/ }])
  t.match(await asked('http://127.0.0.1:1'), [{ level: 'fault', todo: /check the URL/ }])
  const other = createServer((_request, response) => response.setHeader('content-type', 'application/json').end('{"hello":"world"}')).listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  t.match(await asked(`http://127.0.0.1:${(other.address() as AddressInfo).port}`), [{ level: 'warning' }, { level: 'fault', text: /its Card cannot be used/ }])
})

t.test('store, folder and ports of a good setup; nothing is made, nothing stays', async (t) => {
  const dir = t.testdir({})
  const config = configOf(`listen: { host: 127.0.0.1, port: 0 }\nadmin: { port: 0 }\nstore: "lmdb:${dir}/data"\nfiles: { dir: ${dir}/files, max_total_bytes: 100MiB }\nconnectors: [{ name: a, url: "http://h" }]`)
  const findings = await groundFindings(config, NOW)
  t.strictSame(worst(findings), [], said(findings))
  t.match(said(findings), /is made at the first start/)
  t.strictSame(readdirSync(dir), [])
})

t.test('a store in use, a port in use, a clock that was never set', async (t) => {
  const dir = t.testdir({ plain: 'a file, no folder' })
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const { port } = taken.address() as AddressInfo
  const config = configOf(`listen: { host: 127.0.0.1, port: ${port} }\nadmin: { port: 0 }\nstore: "lmdb:${dir}/plain"\nfiles: { dir: ${dir}/files }\nconnectors: [{ name: a, url: "http://h" }]`)
  const findings = await groundFindings(config, 0)
  t.match(findings.filter(({ subject }) => ['clock', 'store', 'listen'].includes(subject)), [
    { level: 'fault', subject: 'clock' }, { level: 'fault', subject: 'store', text: /cannot be used/ }, { level: 'warning', subject: 'listen', text: /is in use/ },
  ])
})

t.test('certificates: their end, and a key of another one', async (t) => {
  t.match(expiryFinding('a', NOW + 90 * DAY, NOW), { level: 'ok' })
  t.match(expiryFinding('a', NOW + 3 * DAY, NOW), { level: 'warning', todo: 'renew it' })
  t.match(expiryFinding('a', NOW - 1, NOW), { level: 'fault' })
  const dir = t.testdir({ 'cert.pem': 'no certificate', 'key.pem': 'no key' })
  const config = configOf(`listen: { host: 127.0.0.1, port: 0, tls: { cert: ${dir}/cert.pem, key: ${dir}/key.pem } }\nadmin: { port: 0 }\nstore: "memory:"\nfiles: { dir: ${dir}/files }\nconnectors: [{ name: a, url: "http://h" }]`)
  t.match((await groundFindings(config, NOW)).find(({ subject }) => subject === 'listen.tls'), { level: 'fault', text: /cannot be read/ })
})

t.test('the command: a checklist, exit code 1 with a fault, 2 with a wrong configuration', async (t) => {
  const connector = new SimConnector({ kind: 'wechat', apiKey: KEY })
  await connector.start()
  t.teardown(() => connector.stop())
  const dir = t.testdir({})
  const run = async (yaml: string, ...flags: string[]): Promise<{ code: number | null; out: string; err: string }> => {
    writeFileSync(join(dir, 'gateway.yaml'), yaml)
    const child = spawn(process.execPath, ['--import', LOADER, MAIN, 'doctor', '--config', join(dir, 'gateway.yaml'), ...flags], { cwd: dir, env: { PATH: process.env['PATH'] ?? '', XAGENT_API_KEY: 'k' }, stdio: 'pipe' })
    const text = { out: '', err: '' }
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => { text.out += chunk })
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => { text.err += chunk })
    const [code] = (await once(child, 'close')) as [number | null]
    return { code, ...text }
  }
  const good = `listen: { host: 127.0.0.1, port: 0 }\nadmin: { port: 0 }\nstore: "lmdb:${dir}/data"\nfiles: { dir: ${dir}/files }\nconnectors:\n  - name: wechat\n    url: ${connector.url}\n    api_key: "${KEY}"\n`
  const fine = await run(good)
  t.equal(fine.code, 0, fine.out + fine.err)
  t.match(fine.out, /^ok {7}configuration: is right\n[^]*ok {7}wechat: preset wechat\n/)
  const wrong = await run(good.replace(KEY, 'another-key'), '--json')
  t.equal(wrong.code, 1)
  const findings = wrong.out.trim().split('\n').map((line) => JSON.parse(line) as Finding)
  t.match(findings.at(-1), { level: 'fault', subject: 'wechat', todo: String })
  t.notMatch(wrong.out, /another-key/)
  const broken = await run('connectors: []\n')
  t.equal(broken.code, 2)
  t.match(broken.err, /gateway\.yaml:1: connectors/)
  t.notOk(existsSync(join(dir, 'data')))
  t.match(readFileSync(join(dir, 'gateway.yaml'), 'utf8'), 'connectors: []')
})
