/** Files over kill -9, with the gateway as a process of its own (DESIGN §5). */
import t from 'tap'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gatewayProcess } from '../helper/gateway-process.js'
import { until } from '../helper/stand.js'
import { SimXagent } from '../../src/sim/xagent.js'
import { startSimConnector } from '../../src/sim/connector.js'

const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')
const NAMES = ['a.png', 'b.png', 'c.png'] as const

t.test('killed between two files, killed while a file is fetched: everything once, nothing lost, no half file', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'xig-files-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const connector = await startSimConnector({ kind: 'telegram' })
  t.teardown(() => connector.stop())
  const config = [
    'listen: { host: 127.0.0.1, port: 0 }', 'admin: { port: 0 }', 'xagent: { api_keys: [key] }', `store: "lmdb:${folder}/data"`, `files: { dir: "${folder}/files" }`,
    'connectors:', `  - { name: telegram, url: "${connector.url}" }`,
  ].join('\n')
  const start = async () => {
    const gateway = await gatewayProcess(t, folder, config)
    const baseUrl = `http://127.0.0.1:${gateway.ports.xagent}/telegram`
    const xagent = new SimXagent({ baseUrl, apiKey: 'key' })
    t.teardown(() => xagent.terminate())
    await xagent.connect()
    return { gateway, baseUrl, xagent }
  }
  const upload = async (baseUrl: string, channelId: string, name: string): Promise<string> => {
    const form = new FormData()
    form.append('file', new Blob([Uint8Array.from(PNG), name]), name)
    const answer = await fetch(`${baseUrl}/files/uploads`, { method: 'POST', body: form, headers: { authorization: 'Bearer key', 'x-xagent-connector-channel-id': channelId } })
    return ((await answer.json()) as { file_ref: string }).file_ref
  }
  const final = async (baseUrl: string, channelId: string) => ({
    messageId: 'f1', text: 'here', files: await Promise.all(NAMES.map(async (name) => ({ type: 'image', file_ref: await upload(baseUrl, channelId, name), filename: name }))) as never,
  })

  const first = await start()
  const { channelId } = await first.xagent.openChannel()
  const legacyId = connector.channels()[0]?.channelId ?? ''
  connector.signIn(legacyId)
  connector.push(legacyId, { text: 'send me three' })
  await first.xagent.waitFor('message')
  connector.media.refuse = ({ filename }) => (filename === 'b.png' ? 503 : null)
  t.match(await first.xagent.sendFinal(channelId, await final(first.baseUrl, channelId)), { payload: { status: 'rejected', retryable: true } })
  // A file that cannot be had yet: the message is taken over and waits for it when the process dies.
  connector.media.fault = () => ({ status: 503, body: 'later' })
  connector.push(legacyId, { text: 'look', files: [{ type: 'image', bytes: PNG }] })
  await until(() => connector.events.all('http').some(({ path, status }) => path.includes('/refs/') && status === 503), 'the first try')
  await first.gateway.kill('SIGKILL')

  connector.media.refuse = () => null
  connector.media.fault = () => null
  const second = await start()
  await second.xagent.openChannel(channelId)
  const { payload } = await second.xagent.waitFor('message', ({ text }) => text === 'look')
  t.match(payload, { files: [{ type: 'image', mime_type: 'image/png' }] })
  t.match(await second.xagent.sendFinal(channelId, await final(second.baseUrl, channelId)), { payload: { status: 'accepted' } })
  t.strictSame(connector.events.all('upload').map(({ filename }) => filename), [...NAMES])
  t.strictSame(connector.sent.map(({ toolId }) => toolId), ['telegram_message_send', ...Array<string>(3).fill('telegram_message_send_media')])
  t.strictSame(await readdir(join(folder, 'files', 'part')).catch(() => []), [], 'nothing half is left')
})
