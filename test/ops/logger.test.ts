import { Writable } from 'node:stream'
import t from 'tap'
import type { Ended } from '../../src/core/effect.js'
import { createLogger, type LogOptions } from '../../src/ops/logger.js'
import { logOutcome } from '../../src/ops/outcome-log.js'
import type { ChannelId, MessageId, RouteName } from '../../src/protocol/ids.js'

const KEY = 'invented"key-1'
const TOKEN = '7000001:AAinvented-token-0000000000000000000'

function logging(options: Partial<LogOptions> = {}) {
  const lines: string[] = []
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString())
      done()
    },
  })
  return { lines, log: createLogger({ level: 'info', pretty: false, secrets: [KEY], destination, ...options }) }
}

const first = (lines: string[]): Record<string, unknown> => JSON.parse(lines[0] ?? '') as Record<string, unknown>

t.test('writes one JSON object a line: level by name, ISO time, no host name, no process id', async (t) => {
  const { lines, log } = logging()
  log.info({ route: 'telegram' }, 'two\nlines')
  log.debug('below the level')
  t.equal(lines.length, 1)
  t.equal(lines[0]?.trimEnd().includes('\n'), false)
  const { time, ...rest } = first(lines)
  t.match(time, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  t.same(rest, { level: 'info', route: 'telegram', msg: 'two\nlines' })
})

t.test('replaces configured secrets wherever they stand in a line', async (t) => {
  const { lines, log } = logging()
  log.info({ deep: { er: { headers: [`Bearer ${KEY}`] } } }, `dialled with ${KEY}`)
  t.notMatch(lines.join(''), 'invented')
  t.match(first(lines), { msg: 'dialled with [redacted]' })
})

t.test('redacts fields that are secret by name, whatever they hold', async (t) => {
  const { lines, log } = logging()
  log.info({ authorization: 'aaaa-1', options: { apiKey: 'bbbb-2', api_key: 'cccc-3' }, packet: { context_token: 'dddd-4', reply_ref: 'eeee-5', input: { code: 'ffff-6' } } }, 'x')
  t.notMatch(lines.join(''), /aaaa|bbbb|cccc|dddd|eeee|ffff/)
})

t.test('logs errors without URLs, tokens or bodies, causes and stacks included', async (t) => {
  const { lines, log } = logging()
  const cause = new Error(`Post "https://platform.example/bot${TOKEN}/sendMessage": read: connection reset by peer`)
  const error = Object.assign(new Error(`upload failed: Body: {"secret words"}`, { cause }), { code: 'ECONNRESET', options: { headers: { authorization: TOKEN } } })
  log.error({ err: error }, 'request failed')
  const line = lines.join('')
  t.notMatch(line, 'AAinvented')
  t.notMatch(line, 'secret words')
  t.match(first(lines), { err: { type: 'Error', code: 'ECONNRESET', message: /^upload failed/, cause: { message: /connection reset by peer/ } } })
})

t.test('survives what is thrown and is no error, and a cause that names itself', async (t) => {
  const { lines, log } = logging()
  log.error({ err: `bot${TOKEN} broke` }, 'x')
  const loop = new Error('round and round')
  loop.cause = loop
  log.error({ err: loop }, 'y')
  t.equal(lines.length, 2)
  t.notMatch(lines.join(''), 'AAinvented')
})

t.test('hides configured secrets in lines for a terminal, too', async (t) => {
  const { lines, log } = logging({ pretty: true })
  log.warn({ note: KEY }, `said ${KEY}`)
  t.match(lines.join(''), /WARN.*said \[redacted\]/)
  t.notMatch(lines.join(''), 'invented')
})

const accepted: Ended = {
  type: 'ended', direction: 'inbound', outcome: 'accepted', reason: null, code: null, detail: null, certainty: 'certain', messageId: 'm1' as MessageId,
  originalId: '4711', attempts: 2, ageMs: 1_234.5, inLedger: true, deadLetterId: null, deadLetterBytes: 0,
}

t.test('gives each outcome one line with ids, at the level of the outcome table, without words', async (t) => {
  const { lines, log } = logging()
  const where = { route: 'telegram' as RouteName, channelId: 'cch_1' as ChannelId }
  logOutcome(log, where, accepted)
  logOutcome(log, where, { ...accepted, direction: 'outbound', outcome: 'in_doubt', reason: 'delivery_in_doubt', code: 'delivery_in_doubt', certainty: 'unknown', deadLetterId: 'd1' })
  logOutcome(log, { ...where, channelId: null }, { ...accepted, outcome: 'unknown_channel', reason: 'unknown_channel' })
  const [one, two, three] = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  const { time: _time, ...fields } = one ?? {}
  t.same(fields, {
    level: 'info', route: 'telegram', channelId: 'cch_1', direction: 'inbound', outcome: 'accepted', certainty: 'certain', messageId: 'm1', originalId: '4711', attempts: 2,
    ageMs: 1_235, msg: 'inbound accepted: xAgent accepted it',
  })
  t.match(two, { level: 'warn', direction: 'outbound', outcome: 'in_doubt', reason: 'delivery_in_doubt', certainty: 'unknown', deadLetterId: 'd1' })
  t.match(three, { level: 'warn', outcome: 'unknown_channel' })
  t.notOk('channelId' in (three ?? {}))
})
