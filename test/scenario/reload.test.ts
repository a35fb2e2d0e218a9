/** SIGHUP on a running gateway: only what changed is touched, links of everything else stay (DESIGN §8). */
import t from 'tap'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gatewayProcess } from '../helper/gateway-process.js'
import { until } from '../helper/stand.js'
import { startSimConnector } from '../../src/sim/connector.js'
import { SimXagent } from '../../src/sim/xagent.js'

t.test('connectors come, change and go; a wrong file changes nothing; keys are rotated', { timeout: 60_000 }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'xig-reload-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const [telegram, wechat, feishu] = [await startSimConnector({ kind: 'telegram' }), await startSimConnector({ kind: 'wechat' }), await startSimConnector({ kind: 'feishu' })]
  for (const connector of [telegram, wechat, feishu]) t.teardown(() => connector.stop())
  const config = (connectors: readonly string[], more = 'xagent: { api_keys: [key-one] }'): string => [
    'listen: { host: 127.0.0.1, port: 0 }', 'admin: { port: 0 }', `store: "lmdb:${folder}/data"`, `files: { dir: "${folder}/files" }`, more, 'connectors:', ...connectors.map((line) => `  - ${line}`), '',
  ].join('\n')
  const line = { telegram: `{ name: telegram, url: "${telegram.url}" }`, wechat: `{ name: wechat, url: "${wechat.url}" }`, feishu: `{ name: feishu, url: "${feishu.url}" }` }
  const gateway = await gatewayProcess(t, folder, config([line.telegram, line.wechat]))
  const reload = async (text: string, said: RegExp): Promise<void> => {
    const before = gateway.log().length
    await writeFile(join(folder, 'gateway.yaml'), text)
    await gateway.kill('SIGHUP')
    await until(() => said.test(gateway.log().slice(before)), `it says ${said}`)
  }
  const dial = async (name: string, apiKey = 'key-one'): Promise<SimXagent> => {
    const xagent = new SimXagent({ baseUrl: `http://127.0.0.1:${gateway.ports.xagent}/${name}`, apiKey, connectorId: '' })
    t.teardown(() => xagent.terminate())
    await until(async () => (await xagent.fetch('/connector-card.json')).status === 200, `${name} is served`)
    await xagent.connect()
    return xagent
  }
  const steady = await dial('telegram')
  const { channelId } = await steady.openChannel()
  const legacyId = telegram.channels()[0]?.channelId ?? ''
  telegram.signIn(legacyId)
  const changed = await dial('wechat')

  await reload(config([line.telegram, `{ name: wechat, url: "${wechat.url}", sender_line: groups }`, line.feishu]), /reloaded: added feishu; started anew wechat/)
  await until(() => !changed.connected, 'the changed one is started anew')
  await (await dial('wechat')).openChannel()
  await (await dial('feishu')).openChannel()

  await reload(config([line.telegram, '{ name: wechat }']), /connectors\[1\]\.url: is missing[^]*not reloaded: everything is as it was/)
  await reload(config([line.telegram], 'limits: { max_links: 5 }\nxagent: { api_keys: [key-one] }'), /limits\.max_links: a change of this key needs a restart[^]*not reloaded/)
  await reload(config([line.telegram], 'xagent: { api_keys: [key-two] }'), /reloaded: changed xagent\.api_keys; removed wechat, feishu/)
  const gone = await fetch(`http://127.0.0.1:${gateway.ports.xagent}/wechat/connector-card.json`)
  t.equal(gone.status, 404)
  await t.rejects(dial('telegram', 'key-one'), 'the old key is over')
  await (await dial('telegram', 'key-two')).close()

  telegram.push(legacyId, { text: 'still here' })
  await steady.waitFor('message', ({ text }) => text === 'still here')
  t.match(await steady.sendFinal(channelId, { messageId: 'f1', text: 'so am I' }), { payload: { status: 'accepted' } })
  t.equal(steady.events.all('closed').length, 0, 'its link was never cut')
  t.equal(telegram.events.all('hello').length, telegram.events.all('socket').length, 'nor was the connector dialled again')
  t.notMatch(gateway.log(), /key-two|key-one/)
})
