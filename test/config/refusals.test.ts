import { readdirSync } from 'node:fs'
import t, { type Test } from 'tap'
import { CONNECTORS, problems } from './parsed.js'

/** One problem is expected: where it is, and what it says. */
function refused(t: Test, text: string, place: string, said: RegExp): void {
  const found = problems(text)
  t.equal(found.length, 1, `one problem, not ${JSON.stringify(found)}`)
  t.equal(found[0]?.startsWith(`gw.yaml:${place}: `), true, `${found[0]} starts with ${place}`)
  t.match(found[0], said)
  t.match(found[0], /; /, 'says what is wrong and what would be right')
}

t.test('an unknown key is named with its line and the key that was probably meant', async (t) => {
  refused(t, `retention:\n  ttl: 1h\n  max_mesages: 5\n${CONNECTORS}`, '3: retention.max_mesages', /unknown key; did you mean max_messages\?$/)
  refused(t, `log: {}\nretenton: {}\n${CONNECTORS}`, '2: retenton', /unknown key; did you mean retention\?$/)
  refused(t, 'connectors:\n  - name: a\n    url: http://h\n    tool-links: 2\n', '4: connectors[0].tool-links', /did you mean tool_links\?$/)
  refused(t, `boundary: { colour: red }\n${CONNECTORS}`, '1: boundary.colour', /unknown key; must be one of mode$/)
})

t.test('a key of another group is no suggestion', async (t) => {
  refused(t, `log: { ttl: 1h }\n${CONNECTORS}`, '1: log.ttl', /must be one of level, pretty$/)
})

t.test('bad units name the value and the units there are', async (t) => {
  refused(t, `retention:\n  ttl: 30\n${CONNECTORS}`, '2: retention.ttl', /30 .*ms, s, m, h or d/)
  refused(t, `retention:\n  ttl: 1.5h\n${CONNECTORS}`, '2: retention.ttl', /"1\.5h" .*ms, s, m, h or d/)
  refused(t, `retention:\n  ttl: 1 h\n${CONNECTORS}`, '2: retention.ttl', /ms, s, m, h or d/)
  refused(t, `retention:\n  ttl: -1h\n${CONNECTORS}`, '2: retention.ttl', /ms, s, m, h or d/)
  refused(t, `retention:\n  max_bytes: 8MB\n${CONNECTORS}`, '2: retention.max_bytes', /"8MB" .*KiB, MiB or GiB/)
  refused(t, `limits: { max_frame_bytes: 1mib }\n${CONNECTORS}`, '1: limits.max_frame_bytes', /KiB, MiB or GiB/)
})

t.test('wrong types and values outside of what is allowed', async (t) => {
  refused(t, `listen:\n  port: "8080"\n${CONNECTORS}`, '2: listen.port', /whole number from 0 to 65535/)
  for (const host of ['"http://127.0.0.1"', '"127.0.0.1:80"', '"a b"', '"[::1]"', '""', '"a..b"']) refused(t, `listen: { host: ${host} }\n${CONNECTORS}`, '1: listen.host', /must be an address or a host name/)
  for (const host of ['127.0.0.1', '"::1"', '"::"', '"fe80::1%eth0"', '"::ffff:10.0.0.1"', 'gateway-1.internal.example', 'localhost']) t.strictSame(problems(`listen: { host: ${host} }\n${CONNECTORS}`), [], host)
  refused(t, `files: { max_total_bytes: 1MiB }\n${CONNECTORS}`, '1: files.max_file_bytes', /more than files\.max_total_bytes/)
  refused(t, `listen: { port: 65536 }\n${CONNECTORS}`, '1: listen.port', /whole number from 0 to 65535/)
  refused(t, `delivery: { window: 0 }\n${CONNECTORS}`, '1: delivery.window', /whole number from 1/)
  refused(t, `store_sync: yes\n${CONNECTORS}`, '1: store_sync', /must be true or false/)
  refused(t, `retention:\n${CONNECTORS}`, '1: retention', /is empty; must be a group of keys/)
  refused(t, `retention: [1h]\n${CONNECTORS}`, '1: retention', /is a list; must be a group of keys/)
  refused(t, `retention: { overflow: drop }\n${CONNECTORS}`, '1: retention.overflow', /evict_oldest or refuse_newest/)
  refused(t, `delivery: { in_doubt: retry }\n${CONNECTORS}`, '1: delivery.in_doubt', /dead_letter/)
  refused(t, `turns: { mode: maybe }\n${CONNECTORS}`, '1: turns.mode', /on or off/)
  refused(t, `store: mysql\n${CONNECTORS}`, '1: store', /memory:, lmdb:<folder> or redis:/)
  refused(t, 'connectors: [{ name: a, url: "http://h", accept: 5 }]', '1: connectors[0].accept', /all, private, or a list/)
  refused(t, 'connectors: [{ name: a, url: "http://h", accept: [1] }]', '1: connectors[0].accept', /a list of texts/)
  refused(t, 'connectors: [{ name: a, url: "http://h", descriptor_check: 1 }]', '1: connectors[0].descriptor_check', /must be never, or a duration like 1m/)
  refused(t, `store: memory:\n${CONNECTORS}`, '1', /ends with a colon.*; put it in quotes/)
})

t.test('connectors: none, without a name, without a URL', async (t) => {
  refused(t, 'connectors: []\n', '1: connectors', /is an empty list; must name at least one connector/)
  refused(t, 'log: {}\n', '1: connectors', /is missing; must be a list of connectors/)
  refused(t, 'connectors:\n  - url: http://h\n', '2: connectors[0].name', /is missing; must be/)
  refused(t, 'connectors:\n  - name: a\n', '2: connectors[0].url', /is missing; must be/)
  t.match(problems('').join(), /connectors: is missing/)
})

t.test('names: only [a-z0-9-]{1,32}, not "files", each once', async (t) => {
  for (const name of ['Telegram', 'tele_gram', '"a/b"', '""', 'x'.repeat(33)]) {
    refused(t, `connectors: [{ name: ${name}, url: "http://h" }]`, '1: connectors[0].name', /1 to 32 of a-z, 0-9 and -/)
  }
  t.strictSame(problems(`connectors: [{ name: ${'x'.repeat(32)}, url: "http://h" }]`), [])
  refused(t, 'connectors: [{ name: files, url: "http://h" }]', '1: connectors[0].name', /must not be "files"/)
  refused(t, 'connectors:\n  - { name: a, url: "http://h" }\n  - { name: b, url: "http://h" }\n  - { name: a, url: "http://i" }\n', '4: connectors[2].name', /connectors\[0\] already; names must differ/)
})

t.test('a Base URL is http or https with a host and at most a path', async (t) => {
  const bad = [
    'ftp://h', 'h:9000', '/relative', 'http://', 'http:///path', 'http:h', 'http://h?x=1', 'http://h?', 'http://h#f', 'http://h#', 'http://h/a b',
    'http://h:99999', 'http://user@h', 'http://user:hunter22@h', 'http://@h', 'http:\\\\\\\\h',
  ]
  for (const url of bad) {
    const found = problems(`connectors:\n  - name: a\n    url: "${url}"\n`)
    t.equal(found.length, 1, `${url} is refused once`)
    t.match(found[0], /^gw\.yaml:3: connectors\[0\]\.url: .*; must be http/)
    t.notMatch(found[0], /hunter22/)
  }
})

t.test('YAML faults name the line: the same key twice, a tab, an open bracket, a second document', async (t) => {
  refused(t, `log: {}\nstore_sync: true\nlog: {}\n${CONNECTORS}`, '3', /stands twice/)
  refused(t, `retention:\n\tttl: 1h\n${CONNECTORS}`, '2', /tab/)
  refused(t, `log: { level: info\n${CONNECTORS}`, '2', /; /)
  refused(t, `${CONNECTORS}store: "memory:\n`, '4', /close what was opened/)
  t.match(problems(`${CONNECTORS}---\n${CONNECTORS}`).join(), /gw\.yaml:3: a second document/)
  refused(t, `log: *unknown\n${CONNECTORS}`, '1', /alias/)
  t.match(problems('just a text').join(), /the file: "just a text" cannot be used; must be a group of keys/)
})

t.test('a YAML fault never repeats what is in the file', async (t) => {
  for (const text of ['xagent: { api_keys: ["hunter22"] }]\n', 'a: "hunter22\n', 'a: *hunter22\n', 'a: !hunter22 x\n', '@hunter22\n', 'a: b: hunter22\n']) {
    const found = problems(text)
    t.not(found.length, 0, `${text.trim()} is refused`)
    t.notMatch(found.join('\n'), /hunter22/)
  }
})

t.test('all problems come at once, rules over several keys included', async (t) => {
  const text = 'retention: { ttl: 1 }\nlog: { lvl: info }\ndelivery: { backoff: { initial: 1m } }\nconnectors:\n  - { name: a, url: "http://h", ca: /no/such/file.pem }\n  - { name: a, url: "http://h" }\n'
  t.match(problems(text), [
    /^gw\.yaml:1: retention\.ttl: /, /^gw\.yaml:2: log\.lvl: /, /^gw\.yaml:3: delivery\.backoff\.initial: /, /^gw\.yaml:6: connectors\[1\]\.name: /, /^gw\.yaml:5: connectors\[0\]\.ca: /,
  ])
  t.equal(problems(text).length, 5)
})

t.test('files that cannot be read: a private CA, a Skill, TLS', async (t) => {
  const folder = t.testdir()
  refused(t, `connectors:\n  - name: a\n    url: http://h\n    ca: ${folder}/none.pem\n`, '4: connectors[0].ca', /ENOENT.*must exist and be readable/)
  refused(t, `connectors:\n  - name: a\n    url: http://h\n    skill: ${folder}\n`, '4: connectors[0].skill', /EISDIR/)
  refused(t, `listen:\n  tls:\n    cert: ${folder}/none.pem\n    key: /dev/null\n${CONNECTORS}`, '3: listen.tls.cert', /ENOENT/)
  refused(t, `admin:\n  tls: { cert: /dev/null }\n${CONNECTORS}`, '2: admin.tls.key', /is missing; must be the path of a PEM file/)
})

t.test('a folder for files that can neither be made nor written; nothing is made by the check', async (t) => {
  const folder = t.testdir({ file: '' })
  refused(t, `files:\n  ttl: 1h\n  dir: ${folder}/file\n${CONNECTORS}`, '3: files.dir', /is no folder.*can be made or written/)
  refused(t, `files: { dir: ${folder}/file/below }\n${CONNECTORS}`, '1: files.dir', /file is no folder/)
  t.strictSame(problems(`files: { dir: ${folder}/a/b }\n${CONNECTORS}`), [])
  t.strictSame(readdirSync(folder), ['file'])
})

t.test('a first backoff above the longest one', async (t) => {
  refused(t, `delivery:\n  backoff:\n    initial: 31s\n${CONNECTORS}`, '3: delivery.backoff.initial', /delivery\.backoff\.max/)
})

t.test('keys named like parts of every object are unknown keys as any other', async (t) => {
  for (const key of ['__proto__', 'constructor', 'toString']) {
    t.match(problems(`${key}: { x: 1 }\n${CONNECTORS}`), [new RegExp(`^gw\\.yaml:1: ${key}: unknown key; `)])
  }
})

t.test('an unknown preset is named with its line and the presets there are', async (t) => {
  refused(t, 'connectors:\n  - name: a\n    url: http://h\n    preset: telegramm\n', '4: connectors[0].preset', /there is no preset "telegramm"; must be auto, .*telegram/)
})

t.test('links instead of refused files need an address that people can reach', async (t) => {
  const text = 'connectors: [{ name: a, url: "http://h", refused_file: link }]'
  refused(t, text, '1: connectors[0].refused_file', /listen\.public_url/)
  t.strictSame(problems(`listen: { public_url: "https://gateway.example" }\n${text}`), [])
})

t.test('two listeners cannot share a port, unless on addresses of their own', async (t) => {
  refused(t, `admin: { port: 8080 }\n${CONNECTORS}`, '1: admin.port', /8080 is listen\.port, too/)
  t.strictSame(problems(`listen: { host: 127.0.0.2 }\nadmin: { port: 8080 }\n${CONNECTORS}`), [])
  t.strictSame(problems(`listen: { port: 0 }\nadmin: { port: 0 }\n${CONNECTORS}`), [])
})

t.test('a Skill file must carry the name of its connector: known at start where the preset says for which Card', async (t) => {
  const folder = t.testdir({ right: '---\nname: connector-im-telegram\n---\n# Telegram\n', other: '---\nname: connector-im-acme\n---\n# Acme\n', forbidden: '---\nname: im-connector-reply\n---\n', bare: '# Telegram\n' })
  const config = (file: string, preset: string): string => `connectors:\n  - name: a\n    url: http://h\n    preset: ${preset}\n    skill: ${folder}/${file}\n`
  for (const [file, preset] of [['right', 'telegram'], ['right', 'auto'], ['other', 'auto'], ['other', 'generic']] as const) t.strictSame(problems(config(file, preset)), [], `${file} ${preset}`)
  refused(t, config('other', 'telegram'), '5: connectors[0].skill', /has the name "connector-im-acme".*must begin with the lines ---, name: connector-im-telegram/)
  refused(t, config('forbidden', 'auto'), '5: connectors[0].skill', /name "im-connector-reply".*connector-<card id/)
  refused(t, config('bare', 'auto'), '5: connectors[0].skill', /has no name in a header/)
})
