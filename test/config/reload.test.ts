/** What a changed configuration touches (DESIGN §8 reload). */
import t from 'tap'
import { writeFileSync } from 'node:fs'
import { configDiff, connectorTexts } from '../../src/config/reload.js'
import { configOf } from './parsed.js'

const TWO = 'connectors:\n  - { name: a, url: "http://a" }\n  - { name: b, url: "http://b" }\n'
const diff = (before: string, after: string) => configDiff(configOf(before), configOf(after), connectorTexts(configOf(before)))
const NOTHING = { fixed: [], changed: [], added: [], removed: [], restarted: [] }

t.test('the same configuration, written in another way, touches nothing', async (t) => {
  t.strictSame(diff(TWO, `retention: { ttl: 60m }\nconnectors:\n  - url: http://b\n    name: b\n  - url: http://a\n    name: a\n`), NOTHING)
})

t.test('only the connectors that differ', async (t) => {
  t.strictSame(diff(TWO, TWO.replace('http://b', 'http://c')), { ...NOTHING, restarted: ['b'] })
  t.strictSame(diff(TWO, TWO.replace('name: b', 'name: c')), { ...NOTHING, added: ['c'], removed: ['b'] })
  t.strictSame(diff(TWO, TWO.replace('"http://b" }', '"http://b", reorder_window: 1s }')), { ...NOTHING, restarted: ['b'] }, 'keys of its preset are its own')
})

t.test('a section of all routes touches all; keys of xAgent none', async (t) => {
  t.strictSame(diff(TWO, `retention: { ttl: 2h, max_messages: 5 }\n${TWO}`), { ...NOTHING, changed: ['retention.ttl', 'retention.max_messages'], restarted: ['a', 'b'] })
  t.strictSame(diff(TWO, `xagent: { api_keys: [new-key, old-key] }\n${TWO}`), { ...NOTHING, changed: ['xagent.api_keys'] })
})

t.test('what was used at the start needs a restart, named as it is written', async (t) => {
  t.strictSame(diff(TWO, `listen: { port: 9 }\nadmin: { read_token: x }\nstore: "memory:"\nlimits: { hello_timeout: 1s }\n${TWO}`).fixed, ['listen.port', 'admin.read_token', 'store', 'limits.hello_timeout'])
})

t.test('a file beside the configuration that says something else is a change', async (t) => {
  const folder = t.testdir({ 'skill.md': '---\nname: connector-x\n---\none\n' })
  const text = `connectors:\n  - { name: a, url: "http://a", skill: "${folder}/skill.md" }\n  - { name: b, url: "http://b" }\n`
  const texts = connectorTexts(configOf(text))
  writeFileSync(`${folder}/skill.md`, '---\nname: connector-x\n---\ntwo\n')
  t.strictSame(configDiff(configOf(text), configOf(text), texts), { ...NOTHING, restarted: ['a'] })
})
