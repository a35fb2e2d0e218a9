/** Turns over outages (DESIGN §4 Turns): whatever ends in between, an answer does not reach the wrong person. */
import t, { type Test } from 'tap'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gatewayProcess, type GatewayProcess } from '../helper/gateway-process.js'
import { accepted, balanced, heard, reached, run, waiting } from '../helper/people.js'
import { metricValue, openChannel, stand, until } from '../helper/stand.js'
import { openStore } from '../../src/store/open.js'
import type { RouteName } from '../../src/protocol/ids.js'
import { startSimConnector } from '../../src/sim/connector.js'
import { SimXagent } from '../../src/sim/xagent.js'

const ANN = 'u_ann@im.wechat'
const BOB = 'u_bob@im.wechat'
/** Turns that are over within a moment of silence. */
const SHORT = 'turns: { quiet: 200ms, timeout: 1s, max: 2s }'
const TOO_MANY = { kind: 'error', error: { code: 'tool_invoke_failed', message: 'wechat send: WeChat API HTTP 429' } } as const

/** Ann has been heard, Bob waits. */
async function annHasTheWord(t: Test, options: Parameters<typeof stand>[1] = {}) {
  const s = await stand(t, { kind: 'wechat', ...options })
  const opened = await openChannel(s)
  s.connector.push(opened.legacyId, { text: 'from Ann', senderId: ANN })
  await opened.xagent.waitFor('message')
  await accepted(s, 1)
  s.connector.push(opened.legacyId, { text: 'from Bob', senderId: BOB })
  await waiting(s, 1)
  return { s, ...opened }
}

t.test('after a restart of the gateway Ann\'s answer still goes to Ann, and Bob still waits', async (t) => {
  const { s, xagent: before, channelId } = await annHasTheWord(t, { store: 'lmdb' })
  before.sendActivity(channelId, 'thinking')
  before.sendDelta(channelId, { messageId: 'a', sequence: 1, text: 'to ' })
  await before.ping()
  await s.restartGateway()
  const xagent = s.xagent({ connectorId: before.connectorId })
  await xagent.connect()
  await xagent.openChannel(channelId)
  await waiting(s, 1)
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'to Ann' }), { payload: { status: 'accepted' } })
  await xagent.ping()
  t.strictSame(heard(xagent), [])
  xagent.sendActivity(channelId, 'idle')
  await xagent.waitFor('message', ({ text }) => text === 'from Bob')
  t.match(await run(xagent, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [[ANN, 'to Ann'], [BOB, 'to Bob']])
  await until(async () => (await s.metric('turns_total', { end: 'certain' })) === 2, 'both turns have certainly ended')
  await balanced(s)
})

t.test('a message of Ann\'s whose ack was lost with the gateway is sent again before Bob\'s, and her answer goes to her', async (t) => {
  const s = await stand(t, { kind: 'wechat', store: 'lmdb' })
  const { xagent: before, channelId, legacyId } = await openChannel(s)
  before.onMessage('none')
  s.connector.push(legacyId, { text: 'from Ann', senderId: ANN })
  await before.waitFor('message')
  s.connector.push(legacyId, { text: 'from Bob', senderId: BOB })
  await waiting(s, 1)
  await before.terminate()
  await s.restartGateway()
  const xagent = s.xagent({ connectorId: before.connectorId })
  await xagent.connect()
  await xagent.openChannel(channelId)
  await xagent.waitFor('message')
  await accepted(s, 1)
  t.match(await run(xagent, channelId, 'a', 'to Ann'), { payload: { status: 'accepted' } })
  await xagent.waitFor('message', ({ text }) => text === 'from Bob')
  t.match(await run(xagent, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
  t.strictSame(heard(xagent), ['from Ann', 'from Bob'])
  t.strictSame(reached(s.connector), [[ANN, 'to Ann'], [BOB, 'to Bob']])
  await balanced(s)
})

t.test('after a SIGKILL Ann\'s answer still goes to Ann, and Bob still waits', { timeout: 60_000 }, async (t) => {
  const { connector, start, stored, xagent: newXagent } = await ground(t)
  const first = await start()
  const before = newXagent(first)
  await before.connect()
  const { channelId } = await before.openChannel()
  const legacyId = connector.channels()[0]?.channelId ?? ''
  connector.signIn(legacyId)
  connector.push(legacyId, { text: 'from Ann', senderId: ANN })
  await before.waitFor('message')
  connector.push(legacyId, { text: 'from Bob', senderId: BOB })
  // Ann's acceptance and Bob's message: what is not committed yet is lost at a SIGKILL, by design.
  await until(async () => (await stored('completed')) === 1 && (await stored('inbound')) === 1, 'both are durable')
  before.sendActivity(channelId, 'thinking')
  await before.ping()
  await first.kill('SIGKILL')

  const second = await start()
  const xagent = newXagent(second, before.connectorId)
  await xagent.connect()
  await xagent.openChannel(channelId)
  await until(async () => (await second.metric('conversations_waiting')) === 1, 'Bob waits')
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'to Ann' }), { payload: { status: 'accepted' } })
  await xagent.ping()
  t.strictSame(heard(xagent), [])
  xagent.sendActivity(channelId, 'idle')
  await xagent.waitFor('message', ({ text }) => text === 'from Bob')
  t.match(await run(xagent, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
  t.strictSame(reached(connector), [[ANN, 'to Ann'], [BOB, 'to Bob']])
  await balanced(second)
})

t.test('clocks stand still while xAgent is away: Ann has the word when it is back', async (t) => {
  const { s, xagent, channelId } = await annHasTheWord(t, { config: 'turns: { quiet: 500ms, timeout: 2s, max: 5s }' })
  xagent.sendActivity(channelId, 'thinking')
  await xagent.terminate()
  const left = Date.now()
  await until(() => Date.now() - left > 3_000, 'xAgent is away for longer than a turn may stand')
  await waiting(s, 1)
  await xagent.reconnect()
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'to Ann' }), { payload: { status: 'accepted' } })
  t.strictSame(heard(xagent), ['from Ann'])
  xagent.sendActivity(channelId, 'idle')
  await xagent.waitFor('message', ({ text }) => text === 'from Bob')
  t.match(await run(xagent, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [[ANN, 'to Ann'], [BOB, 'to Bob']])
  await balanced(s)
})

t.test('a final that was refused for now and comes again in Bob\'s turn goes to Ann', async (t) => {
  const s = await stand(t, { kind: 'wechat', config: SHORT })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'from Ann', senderId: ANN })
  await xagent.waitFor('message')
  s.connector.onTool(({ toolId }) => (toolId === 'wechat_message_send' ? TOO_MANY : undefined))
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'to Ann' }), { payload: { status: 'rejected', code: 'target_temporarily_unavailable', retryable: true } })
  s.connector.push(legacyId, { text: 'from Bob', senderId: BOB })
  await xagent.waitFor('message', ({ text }) => text === 'from Bob')
  s.connector.onTool(() => undefined)
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'to Ann' }), { payload: { status: 'accepted' } })
  t.match(await run(xagent, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [[ANN, 'to Ann'], [BOB, 'to Bob']])
  await balanced(s)
})

t.test('the same over a restart of the gateway', async (t) => {
  const s = await stand(t, { kind: 'wechat', config: SHORT, store: 'lmdb' })
  const { xagent: before, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'from Ann', senderId: ANN })
  await before.waitFor('message')
  s.connector.onTool(({ toolId }) => (toolId === 'wechat_message_send' ? TOO_MANY : undefined))
  t.match(await before.sendFinal(channelId, { messageId: 'a', text: 'to Ann' }), { payload: { status: 'rejected', retryable: true } })
  s.connector.push(legacyId, { text: 'from Bob', senderId: BOB })
  await before.waitFor('message', ({ text }) => text === 'from Bob')
  await accepted(s, 2)
  await s.restartGateway()
  s.connector.onTool(() => undefined)
  const xagent = s.xagent({ connectorId: before.connectorId })
  await xagent.connect()
  await xagent.openChannel(channelId)
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'to Ann' }), { payload: { status: 'accepted' } })
  t.match(await xagent.sendFinal(channelId, { messageId: 'b', text: 'to Bob' }), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [[ANN, 'to Ann'], [BOB, 'to Bob']])
  await balanced(s)
})

t.test('an answer that began in Ann\'s turn and ends in Bob\'s goes to Ann', async (t) => {
  const s = await stand(t, { kind: 'wechat', config: SHORT })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'from Ann', senderId: ANN })
  await xagent.waitFor('message')
  xagent.sendDelta(channelId, { messageId: 'a', sequence: 1, text: 'to ' })
  await xagent.ping()
  s.connector.push(legacyId, { text: 'from Bob', senderId: BOB })
  await xagent.waitFor('message', ({ text }) => text === 'from Bob')
  t.ok((await s.metric('turns_total', { end: 'timeout' })) >= 1, 'Ann\'s turn is over')
  xagent.sendDelta(channelId, { messageId: 'a', sequence: 2, text: 'Ann' })
  t.match(await run(xagent, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'to Ann' }), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [[BOB, 'to Bob'], [ANN, 'to Ann']])
  t.equal(await s.metric('delta_streams'), 0)
  await balanced(s)
})

t.test('a turn without activity ends quietly after its final; without a final after its timeout', async (t) => {
  const s = await stand(t, { kind: 'wechat', config: SHORT })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'from Ann', senderId: ANN })
  await xagent.waitFor('message')
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'to Ann' }), { payload: { status: 'accepted' } })
  s.connector.push(legacyId, { text: 'from Bob', senderId: BOB })
  await xagent.waitFor('message', ({ text }) => text === 'from Bob')
  s.connector.push(legacyId, { text: 'from Cleo', senderId: 'u_cleo@im.wechat' })
  await xagent.waitFor('message', ({ text }) => text === 'from Cleo')
  t.match(await xagent.sendFinal(channelId, { messageId: 'c', text: 'to Cleo' }), { payload: { status: 'accepted' } })
  await until(async () => (await s.metric('turns_total', { end: 'likely' })) === 2, 'two have likely ended')
  t.equal(await s.metric('turns_total', { end: 'timeout' }), 1)
  t.strictSame(reached(s.connector), [[ANN, 'to Ann'], ['u_cleo@im.wechat', 'to Cleo']])
  await balanced(s)
})

t.test('a late answer goes to the person whose turn timed out, as long as nobody else has the word', async (t) => {
  const s = await stand(t, { kind: 'wechat', config: SHORT })
  const { xagent, channelId, legacyId } = await openChannel(s)
  for (const [senderId, text] of [[BOB, 'from Bob'], [ANN, 'from Ann']] as const) {
    s.connector.push(legacyId, { text, senderId })
    await xagent.waitFor('message', (message) => message.text === text)
  }
  await until(async () => (await s.metric('turns_total', { end: 'timeout' })) === 2, 'both turns have timed out')
  t.match(await xagent.sendFinal(channelId, { messageId: 'a', text: 'to Ann' }), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [[ANN, 'to Ann']])
})

t.test('after turns that certainly ended, a message that answers nobody reaches nobody', async (t) => {
  const { s, xagent, channelId } = await annHasTheWord(t)
  t.match(await run(xagent, channelId, 'a', 'to Ann'), { payload: { status: 'accepted' } })
  await xagent.waitFor('message', ({ text }) => text === 'from Bob')
  t.match(await run(xagent, channelId, 'b', 'to Bob'), { payload: { status: 'accepted' } })
  await until(async () => (await s.metric('turns_total', { end: 'certain' })) === 2, 'both turns have certainly ended')
  t.match(await xagent.sendFinal(channelId, { messageId: 'c', text: 'good morning' }), { payload: { status: 'rejected', code: 'no_reply_target', retryable: false } })
  t.equal(reached(s.connector).length, 2)
  t.equal(await s.metric('dead_letters_total', { direction: 'outbound', reason: 'no_reply_target' }), 1)
  await balanced(s)
})

t.test('people of different channels do not wait for each other', async (t) => {
  const { s, xagent, channelId } = await annHasTheWord(t)
  const other = await openChannel(s)
  s.connector.push(other.legacyId, { text: 'elsewhere', senderId: BOB })
  await other.xagent.waitFor('message')
  t.match(await run(other.xagent, other.channelId, 'o', 'to Bob elsewhere'), { payload: { status: 'accepted' } })
  t.match(await run(xagent, channelId, 'a', 'to Ann'), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [[BOB, 'to Bob elsewhere'], [ANN, 'to Ann']])
})

t.test('with turns.mode off nobody waits', async (t) => {
  const s = await stand(t, { kind: 'wechat', config: 'turns: { mode: off }' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  for (const [senderId, text] of [[ANN, 'Ann 1'], [BOB, 'Bob 1'], [ANN, 'Ann 2'], [BOB, 'Bob 2']] as const) s.connector.push(legacyId, { text, senderId })
  await xagent.waitFor('message', ({ text }) => text === 'Bob 2')
  t.strictSame(heard(xagent), ['Ann 1', 'Bob 1', 'Ann 2', 'Bob 2'])
  await accepted(s, 4)
  t.equal(await s.metric('conversations_waiting'), 0)
  t.match(await run(xagent, channelId, 'b', 'to whoever wrote last'), { payload: { status: 'accepted' } })
  t.strictSame(reached(s.connector), [[BOB, 'to whoever wrote last']])
  t.equal(await s.metric('turns_total', { end: 'certain' }), 0)
  await balanced(s)
})

/** A gateway in a process of its own, to be killed; `stored` counts the records of a kind. */
async function ground(t: Test) {
  const folder = await mkdtemp(join(tmpdir(), 'xig-turns-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const connector = await startSimConnector({ kind: 'wechat' })
  t.teardown(() => connector.stop())
  const config = [
    'listen: { host: 127.0.0.1, port: 0 }', 'admin: { port: 0 }', 'xagent: { api_keys: [key] }', `store: "lmdb:${folder}/data"`, `files: { dir: "${folder}/files" }`,
    'connectors:', `  - { name: wechat, url: "${connector.url}" }`,
  ].join('\n')
  return {
    connector,
    async start() {
      const gateway = await gatewayProcess(t, folder, config)
      const metrics = async (): Promise<string> => (await fetch(`http://127.0.0.1:${gateway.ports.admin}/metrics`)).text()
      return { ...gateway, metric: async (name: string, labels: Record<string, string> = {}) => metricValue(await metrics(), name, labels) }
    },
    async stored(kind: 'completed' | 'inbound'): Promise<number> {
      const store = openStore(`lmdb:${folder}/data`, { sync: false, now: Date.now })
      const count = await store.count('wechat' as RouteName, kind)
      await store.close()
      return count
    },
    xagent(gateway: GatewayProcess, connectorId = ''): SimXagent {
      const xagent = new SimXagent({ baseUrl: `http://127.0.0.1:${gateway.ports.xagent}/wechat`, apiKey: 'key', connectorId })
      t.teardown(() => xagent.terminate())
      return xagent
    },
  }
}
