import { readFileSync } from 'node:fs'
import t from 'tap'
import { parseConfig } from '../../src/config/load.js'
import { CONNECTORS, ENV, configOf, parsed } from './parsed.js'

const MIB = 1024 * 1024
const HOUR = 3_600_000

t.test('a file that names only a connector gets every documented default, in ms and bytes', async (t) => {
  const keys = 'xagent: { api_keys: ["${XAGENT_API_KEY}"] }\n'
  t.strictSame(configOf(keys + CONNECTORS), {
    listen: { host: '0.0.0.0', port: 8080, publicUrl: null, tls: null },
    admin: { host: '127.0.0.1', port: 8081, tls: null, readToken: null, writeToken: null, insecure: false, showTexts: false },
    xagent: { apiKeys: ['xagent-key-1'], insecure: false },
    store: 'lmdb:./data',
    storeSync: false,
    redis: { prefix: 'xig:', waitReplicas: 0 },
    files: {
      dir: './data/files', ttlMs: 24 * HOUR, maxFileBytes: 100 * MIB, maxTotalBytes: 2048 * MIB, inbound: 'eager', fetchTimeoutMs: 30_000,
      allowedHosts: [], allowPrivate: false,
    },
    retention: {
      ttlMs: HOUR, maxMessages: 1000, maxBytes: 8 * MIB, overflow: 'evict_oldest', sweepIntervalMs: 30_000, deadLetters: 10_000,
      deadLetterBytes: 64 * MIB, deadLetterTtlMs: 7 * 24 * HOUR,
    },
    delivery: {
      window: 1, ackTimeoutMs: 30_000, backoff: { initialMs: 500, maxMs: 30_000 }, maxAttempts: 0, flushChannels: 50, outboundQueue: 100,
      outboundWaitMs: 20_000, toolTimeoutMs: 60_000, inDoubt: 'dead_letter', drainTimeoutMs: 25_000, idleCloseMs: null,
    },
    turns: { mode: 'on', quietMs: 10_000, timeoutMs: 300_000, maxMs: 900_000 },
    deltas: { ttlMs: 600_000, maxStreams: 1000, maxBytes: MIB, sweepIntervalMs: 60_000 },
    activity: { timeoutMs: 30_000 },
    ownership: { leaseMs: 5_000 },
    limits: {
      maxFrameBytes: MIB, legacyMaxFrameBytes: 16 * MIB, maxChannels: 10_000, maxPendingBytes: 256 * MIB, maxLinks: 1000, linksPerIp: 50,
      helloTimeoutMs: 10_000, packetsPerSecond: 2000, legacyBytesPerSecond: 32 * MIB,
    },
    boundary: { mode: 'enforce' },
    log: { level: 'info', pretty: false },
    connectors: [{
      name: 'telegram', url: 'http://127.0.0.1:19091', apiKey: 'connector-key-1', ca: null, preset: 'auto', toolLinks: 4, accept: 'all',
      commands: 'private', senderLine: 'off', skill: null, presetOverrides: {},
    }],
  })
})

t.test('the documented file loads as it stands, and its values are the defaults', async (t) => {
  const text = readFileSync(new URL('../../config/gateway.yaml', import.meta.url), 'utf8')
  const { config, notes } = parseConfig('gateway.yaml', text, ENV)
  t.strictSame(config, configOf(CONNECTORS))
  t.strictSame(notes, [])
})

t.test('keys that the file does not name come from the environment', async (t) => {
  const { xagent, connectors } = configOf('connectors: [{ name: my-chat, url: "http://127.0.0.1:1" }]', { XAGENT_API_KEY: 'k', MY_CHAT_CONNECTOR_KEY: 'c' })
  t.strictSame(xagent.apiKeys, ['k'])
  t.equal(connectors[0]?.apiKey, 'c')
  t.equal(configOf('connectors: [{ name: my-chat, url: "http://127.0.0.1:1", api_key: null }]', { XAGENT_API_KEY: 'k', MY_CHAT_CONNECTOR_KEY: 'c' }).connectors[0]?.apiKey, null)
})

t.test('a configuration cannot be changed after it was loaded', async (t) => {
  const config = configOf(CONNECTORS) as { retention: { ttlMs: number }; connectors: unknown[] }
  t.throws(() => { config.retention.ttlMs = 1 }, TypeError)
  t.throws(() => config.connectors.push({}), TypeError)
})

t.test('a sweep that is rarer than twice per ttl is lowered to half of ttl, and said (v1 §7.2)', async (t) => {
  const { config, notes } = parsed(`retention: { ttl: 20s, sweep_interval: 15s }\n${CONNECTORS}`)
  t.equal(config.retention.sweepIntervalMs, 10_000)
  t.equal(notes.length, 1)
  t.match(notes[0], /retention\.sweep_interval/)
  t.strictSame(parsed(`retention: { ttl: 20s, sweep_interval: 10s }\n${CONNECTORS}`).notes, [])
})

t.test('idle_close: never and a duration, accept: a word and a list', async (t) => {
  t.equal(configOf(`delivery: { idle_close: 10m }\n${CONNECTORS}`).delivery.idleCloseMs, 600_000)
  t.equal(configOf(`delivery: { idle_close: never }\n${CONNECTORS}`).delivery.idleCloseMs, null)
  t.strictSame(configOf('connectors: [{ name: a, url: "http://h", accept: ["880000042", oc_1] }]').connectors[0]?.accept, ['880000042', 'oc_1'])
  t.equal(configOf('connectors: [{ name: a, url: "http://h", accept: private }]').connectors[0]?.accept, 'private')
})

t.test('a Base URL keeps its path prefix and loses a trailing slash', async (t) => {
  const url = (text: string) => configOf(`connectors: [{ name: a, url: "${text}" }]`).connectors[0]?.url
  t.equal(url('https://chat.example/bridge/telegram/'), 'https://chat.example/bridge/telegram')
  t.equal(url('http://[::1]:9000'), 'http://[::1]:9000')
})
