import { join } from 'node:path'
import t from 'tap'
import { CONNECTORS, configOf, problems } from './parsed.js'

const folder = t.testdir({ key: 'from-a-file\n' })
const secretFile = join(folder, 'key')
const keys = (list: string) => `xagent:\n  api_keys: ${list}\n${CONNECTORS}`

t.test('${VAR} stands anywhere in a text', async (t) => {
  t.strictSame(configOf(keys('["${A}", "x-${A}-${B}"]'), { A: 'one', B: 'two' }).xagent.apiKeys, ['one', 'x-one-two'])
})

t.test('what a variable holds is a value, never YAML or another reference', async (t) => {
  t.strictSame(configOf(keys('["${A}", "${B}"]'), { A: '"],insecure:true', B: 'file:/etc/passwd' }).xagent, { apiKeys: ['"],insecure:true', 'file:/etc/passwd'], insecure: false })
  t.strictSame(configOf(keys('["${A}"]'), { A: '$literal{B}' }).xagent.apiKeys, ['$literal{B}'])
})

t.test('file:/path as a whole value is the content, without the line break at its end', async (t) => {
  t.strictSame(configOf(keys(`["file:${secretFile}"]`)).xagent.apiKeys, ['from-a-file'])
})

t.test('an empty key counts as none', async (t) => {
  t.strictSame(configOf(keys('["", "${A}", "k"]'), { A: '' }).xagent.apiKeys, ['k'])
  t.equal(configOf('connectors: [{ name: a, url: "http://h", api_key: "" }]').connectors[0]?.apiKey, null)
  t.equal(configOf(`admin: { read_token: "" }\n${CONNECTORS}`).admin.readToken, null)
})

t.test('a missing variable, a missing file and half a reference name key and line', async (t) => {
  t.match(problems(keys('["${NO_SUCH_KEY}"]')), [/^gw\.yaml:2: xagent\.api_keys\[0\]: the environment variable NO_SUCH_KEY is not set; /])
  t.match(problems(keys(`["k", "file:${folder}/none"]`)), [/^gw\.yaml:2: xagent\.api_keys\[1\]: the file .*none cannot be read \(ENOENT\); /])
  t.match(problems(keys('["k", "file:secrets/key"]')), [/^gw\.yaml:2: xagent\.api_keys\[1\]: .*must be file:\/path/])
  t.match(problems(keys('["k", "${A"]')), [/^gw\.yaml:2: xagent\.api_keys\[1\]: .*must be \$\{NAME\}/])
  t.match(problems(keys('["k", "${a-b}"]')), [/must be \$\{NAME\}/])
})

t.test('a secret is never printed, wherever it stands', async (t) => {
  const env = { SECRET: 'hunter22' }
  const texts = [
    keys('"${SECRET}"'), keys('hunter22'), keys('["hunter 22", hunter22 2]'), `retention: { ttl: "\${SECRET}" }\n${CONNECTORS}`, `log: { level: "\${SECRET}" }\n${CONNECTORS}`,
    `store: "hunter22"\n${CONNECTORS}`, `admin: { read_token: [hunter22] }\n${CONNECTORS}`, 'connectors: [{ name: a, url: "http://x:${SECRET}@h" }]',
    'connectors: [{ name: a, url: "http://h", api_key: { x: hunter22 } }]', 'connectors: [{ name: "${SECRET}!", url: "http://h" }]',
  ]
  for (const text of texts) {
    const found = problems(text, env)
    t.not(found.length, 0, `${text} is refused`)
    t.notMatch(found.join('\n'), /hunter/)
  }
})

t.test('a key that no HTTP header can carry is refused', async (t) => {
  t.match(problems('xagent: { api_keys: ["schlüssel"] }\nconnectors: [{ name: a, url: "http://h", api_key: "two words" }]'), [/xagent\.api_keys\[0\]: .*printable ASCII/, /connectors\[0\]\.api_key: .*printable ASCII/])
})
