import t from 'tap'
import { configFromArguments, isLoopback } from '../../src/config/load.js'
import { ConfigError } from '../../src/protocol/errors.js'
import { CONNECTORS, configOf, problems } from './parsed.js'

const NONE = {}

t.test('no xAgent key on a listener that others can reach is refused, unless insecure is said', async (t) => {
  t.match(problems(CONNECTORS, NONE), [/^gw\.yaml:1: xagent\.api_keys: no key, and listen\.host 0\.0\.0\.0 is not loopback; /])
  t.match(problems(`xagent: { api_keys: [] }\n${CONNECTORS}`, NONE), [/xagent\.api_keys: no key/])
  t.match(problems(`xagent: { api_keys: [""] }\n${CONNECTORS}`, NONE), [/xagent\.api_keys: no key/])
  t.equal(configOf(`xagent: { insecure: true }\n${CONNECTORS}`, NONE).xagent.insecure, true)
  for (const host of ['127.0.0.1', '127.1.2.3', 'localhost', '"::1"']) t.strictSame(problems(`listen: { host: ${host} }\n${CONNECTORS}`, NONE), [])
})

t.test('an admin listener that others can reach needs both tokens, unless insecure is said', async (t) => {
  t.match(problems(`admin: { host: 0.0.0.0 }\n${CONNECTORS}`), [/admin\.read_token: no token/, /admin\.write_token: no token/])
  t.match(problems(`admin: { host: 0.0.0.0, read_token: r }\n${CONNECTORS}`), [/admin\.write_token: no token/])
  t.strictSame(problems(`admin: { host: 0.0.0.0, read_token: r, write_token: w }\n${CONNECTORS}`), [])
  t.strictSame(problems(`admin: { host: 0.0.0.0, insecure: true }\n${CONNECTORS}`), [])
})

t.test('what is loopback', async (t) => {
  for (const host of ['127.0.0.1', '127.255.0.1', '::1', 'localhost']) t.equal(isLoopback(host), true, host)
  for (const host of ['0.0.0.0', '::', '10.0.0.1', '128.0.0.1', '127.0.0.1.example', 'gateway.example']) t.equal(isLoopback(host), false, host)
})

t.test('without a file, keys come from the environment and the listener is open to others only with one', async (t) => {
  const url = 'http://127.0.0.1:19091'
  const keyed = configFromArguments([{ name: 'my-chat', url }], { XAGENT_API_KEY: 'k', MY_CHAT_CONNECTOR_KEY: 'c' })
  t.match(keyed.config, { listen: { host: '0.0.0.0' }, xagent: { apiKeys: ['k'] }, connectors: [{ name: 'my-chat', url, apiKey: 'c' }] })
  t.strictSame(keyed.notes, [])
  for (const env of [{}, { XAGENT_API_KEY: '' }]) {
    const keyless = configFromArguments([{ name: 'a', url }, { name: 'b', url }], env)
    t.match(keyless.config, { listen: { host: '127.0.0.1' }, xagent: { apiKeys: [] } })
    t.match(keyless.notes, [/127\.0\.0\.1/])
    t.strictSame(keyless.config.connectors.map(({ name, apiKey }) => [name, apiKey]), [['a', null], ['b', null]])
  }
})

t.test('without a file, a wrong name or URL says so, never repeating the URL', async (t) => {
  const refused = (...list: { name: string; url: string }[]): readonly string[] => {
    try {
      configFromArguments(list, {})
      return []
    } catch (error) {
      if (error instanceof ConfigError) return error.problems
      throw error
    }
  }
  t.match(refused({ name: 'A', url: 'http://h' }), [/^--connector: connectors\[0\]\.name: /])
  t.match(refused({ name: 'a', url: 'http://u:hunter22@h' }), [/^--connector: connectors\[0\]\.url: /])
  t.notMatch(refused({ name: 'a', url: 'http://u:hunter22@h' }).join(), /hunter22/)
  t.match(refused({ name: 'a', url: 'http://h' }, { name: 'a', url: 'http://i' }), [/names must differ/])
})
