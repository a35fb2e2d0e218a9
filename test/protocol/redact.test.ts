import { readFileSync } from 'node:fs'
import t from 'tap'
import fc from 'fast-check'
import { scrub, scrubber } from '../../src/protocol/redact.js'

const TOKEN = '7000001:AAinvented-token-0000000000000000000'

t.test('keeps what a connector says where nothing in it is secret', async (t) => {
  const plain = [
    '发送 Telegram 消息失败: Telegram API HTTP 429',
    '发送 Telegram 消息失败: Telegram API error 429: Too Many Requests: retry after 3',
    '发送 Telegram 消息失败: invalid character \'<\' looking for beginning of value',
    '发送微信消息失败: sendmessage ret=-14 errmsg=',
    '飞书发送消息失败: code=230001 msg=invented failure',
    'channel is not bound to an authenticated Telegram chat',
    'unknown tool_id: no_such_tool',
    'media_ref not found or expired',
    'dial tcp 192.0.2.10:443: connect: connection refused',
    'connector_channel_connector_mismatch',
    'invalid character \'o\' looking for beginning of object key string',
  ]
  for (const text of plain) t.equal(scrub(text), text)
})

t.test('reduces a URL to its host, and keeps what follows', async (t) => {
  t.equal(
    scrub(`发送 Telegram 消息失败: Post "https://platform.example/bot${TOKEN}/sendMessage": context deadline exceeded`),
    '发送 Telegram 消息失败: Post "https://platform.example/…": context deadline exceeded',
  )
  t.equal(scrub('Get "https://user:pass@platform.example:8443/a?b=c#d": EOF'), 'Get "https://platform.example:8443/…": EOF')
  t.equal(scrub('see https://platform.example, please'), 'see https://platform.example, please')
  t.equal(scrub('wss://[2001:db8::1]:9000/x broke'), 'wss://[2001:db8::1]:9000/… broke')
  t.notMatch(scrub('https://user:pa/ss@platform.example/x'), /pa|ss@/, 'a slash in a password')
  t.notMatch(scrub('{"url":"https:\\/\\/platform.example\\/signed\\/abc?sig=def"}'), /signed|def/, 'as JSON writes it')
})

t.test('removes header maps and bodies to their end', async (t) => {
  const text = 'response content-type not json, response: StatusCode: 200, Header:map[Connection:[keep-alive] Set-Cookie:[a=secretcookie]], Content-Type: text/html, Body: <html>secret page</html>'
  const scrubbed = scrub(text)
  t.match(scrubbed, /^response content-type not json, response: StatusCode: 200,/)
  t.notMatch(scrubbed, /secret/)
  t.equal(scrub('upload refused, body: {"user":"Ann","words":"see you"}'), 'upload refused, body: [redacted]')
})

t.test('removes tokens, Bearer values and what secret-looking names hold', async (t) => {
  const leaks = [
    `bot${TOKEN}`, `token ${TOKEN}`, `/bot${TOKEN.replace(':', '%3A')}/getMe`, 'Authorization: Bearer abcDEF.123-xyz', 'basic abcDEF.123-xyz', 'context_token=abcDEF.123-xyz',
    '{"app_secret":"abcDEF.123-xyz more"}', '{\\"aes_key\\":\\"abcDEF.123-xyz\\"}', 'password: \'abcDEF.123-xyz\'', 'X-Api-Key:[abcDEF.123-xyz]', 'apikey => abcDEF.123-xyz',
    'error: token=abcDEF.123-xyz', 'warning=key:abcDEF.123-xyz', 'no host /path?sign=abcDEF.123-xyz', 'open /var/lib/app/abcDEF.123-xyz.jpg', 'open C:\\data\\abcDEF.123-xyz',
  ]
  for (const leak of leaks) t.notMatch(scrub(`before ${leak} after`), /AAinvented|abcDEF|123-xyz/, leak)
})

t.test('removes long runs that look like keys, not long names', async (t) => {
  t.equal(scrub('digest 0123456789abcdef0123456789abcdef ends'), 'digest [redacted] ends')
  t.equal(scrub('blob QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo= ends'), 'blob [redacted] ends')
  t.equal(scrub('connection_not_authenticated_for_this_channel'), 'connection_not_authenticated_for_this_channel')
})

t.test('gives one line: no control characters, no direction marks, no lone surrogates', async (t) => {
  t.equal(scrub('one\r\ntwo\u0000three\u001b[31m\u2028four\u202efive'), 'one two three [31m four five')
  t.equal(scrub('bad \ud800 end'), 'bad \ufffd end')
})

t.test('is cut to the length asked for, never inside a character or a secret', async (t) => {
  t.equal(scrub('words '.repeat(100)).length, 300)
  t.match(scrub('words '.repeat(100)), /…$/)
  t.equal(scrub('👋👋👋👋', 4), '👋…')
  t.ok(scrub('x '.repeat(3) + '👋'.repeat(300)).isWellFormed())
  t.notMatch(scrub(`${'https://platform.example/long/path '.repeat(117)}abcd${'k3Y'.repeat(40)}`, 100_000), 'k3Yk3Y')
})

t.test('replaces configured secrets in every spelling, and ignores those too short to be one', async (t) => {
  const secret = 'pass word/+"1'
  const clean = scrubber([secret, 'abc', ''])
  const spellings = [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1), Buffer.from(secret).toString('base64')]
  for (const spelling of spellings) t.equal(clean(`got ${spelling} back`), 'got [redacted] back')
  t.equal(clean('abc stays'), 'abc stays')
  t.equal(scrubber(['long-secret', 'long-secret-2'])('long-secret-2'), '[redacted]', 'one that contains another goes whole')
})

t.test('no token of the recorded error texts survives', async (t) => {
  for (const connector of ['telegram', 'wechat', 'feishu']) {
    const lines = readFileSync(new URL(`../fixtures/packets/${connector}.jsonl`, import.meta.url), 'utf8').trim().split('\n')
    for (const line of lines) {
      for (const text of stringsIn(JSON.parse(line))) {
        const scrubbed = scrub(text, 100_000)
        t.notMatch(scrubbed, /AAinvented-token|\?receive_id_type|sendMessage|map\[[A-Z]|<html>/, `${connector}: ${scrubbed}`)
      }
    }
  }
})

/** Letters and digits mixed, so that no shrunk example is an ordinary word. */
const secretLike = fc.stringMatching(/^[A-Z][0-9][A-Za-z0-9_-]{10,38}[0-9]$/)
const noise = fc.string({ maxLength: 40 }).map((text) => text.replace(/["'`<>\\]/g, ''))

t.test('a planted token never survives, whatever stands around it', async () => {
  const places: ((secret: string) => string)[] = [
    (secret) => `https://platform.example/bot7000001:${secret}/sendMessage`,
    (secret) => `https://${secret}:x@platform.example/`,
    (secret) => `https://platform.example/a?x=1&y=${secret}`,
    (secret) => `7000001:${secret}`,
    (secret) => `Bearer ${secret}`,
    (secret) => `api_key=${secret}`,
    (secret) => `"context_token": "${secret}"`,
    (secret) => `Header:map[X-A:[${secret}]]`,
    (secret) => `Body: ${secret}`,
    (secret) => `open /var/data/${secret}: no such file`,
  ]
  fc.assert(fc.property(noise, fc.constantFrom(...places), secretLike, noise, (before, place, secret, after) => {
    return !scrub(`${before} ${place(secret)} ${after}`, 10_000).includes(secret)
  }), { numRuns: 2_000 })
})

t.test('a configured secret never survives, and the result is always one well-formed line within its length', async () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), fc.string({ minLength: 4 }), fc.string({ unit: 'binary' }), fc.integer({ min: 10, max: 400 }), (before, secret, after, length) => {
    const scrubbed = scrubber([secret])(before + secret + after, length)
    // Drawn from the noise itself, or made of the replacement's own letters, it may stand there for another reason.
    const harmless = '[redacted]'.includes(secret) || before.includes(secret) || after.includes(secret)
    return scrubbed.length <= length && scrubbed.isWellFormed() && !/[\p{Cc}\u2028\u2029]/u.test(scrubbed) && (harmless || !scrubbed.includes(secret) || /^[[\]…. redacted]*$/.test(secret))
  }), { numRuns: 1_000 })
})

t.test('takes no long time over any text', async (t) => {
  const hostile = ['key', 'a.', 'map', '/a', '\\"', 'key="', '12345', '?a=', 'headers ', '[[', 'key=[', 'bearer ', 'https://a@', '_-', 'token:'].map((part) => part.repeat(200_000 / part.length))
  const startedAt = performance.now()
  for (const text of hostile) scrub(text)
  t.ok(performance.now() - startedAt < 2_000, 'seconds would mean backtracking without bound')
})

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsIn) : []
}
