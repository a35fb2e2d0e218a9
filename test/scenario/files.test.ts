/** Files both ways, over real sockets: from the connector's HTTP side to xAgent's download, and back (DESIGN §3 Files, §5). */
import t from 'tap'
import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { accepted, waiting } from '../helper/people.js'
import { openChannel, stand, until, type OpenChannel, type Stand } from '../helper/stand.js'
import { upload as uploadTo } from '../helper/upload.js'

const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')
const PDF = Buffer.from('%PDF-1.4\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF\n')

interface FileItem { readonly type: string; readonly file_ref: string; readonly filename?: string; readonly mime_type?: string; readonly byte_size?: number; readonly expires_at?: number; readonly download_url: string }
const filesOf = (payload: Record<string, unknown>): readonly FileItem[] => (payload['files'] ?? []) as FileItem[]

const mediaOf = (payload: Record<string, unknown>): string[] => (payload['media'] as { media_ref: string }[]).map(({ media_ref: ref }) => ref)

const upload = (s: Stand, { channelId }: OpenChannel, bytes: Buffer, filename: string): Promise<string> => uploadTo(s.baseUrl(), channelId, bytes, filename)

const download = async (url: string): Promise<{ status: number; headers: Headers; body: Buffer }> => {
  const response = await fetch(url)
  return { status: response.status, headers: response.headers, body: Buffer.from(await response.arrayBuffer()) }
}

t.test('a picture reaches xAgent: kind from its bytes, references of the gateway, one URL with and without the prefix', async (t) => {
  const s = await stand(t)
  const { xagent, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'look', files: [{ type: 'file', filename: 'x.bin', bytes: PNG, contentType: 'text/html' }] })
  const { payload } = await xagent.waitFor('message')
  const [file] = filesOf(payload)
  t.match(file, { type: 'image', mime_type: 'image/png', byte_size: PNG.length, file_ref: /^file_/, download_url: `/files/refs/${file?.file_ref}`, expires_at: Number })
  t.notMatch(JSON.stringify(payload), /tgmedia/, 'no reference of the connector')
  for (const base of [s.baseUrl(), new URL(s.baseUrl()).origin]) {
    const got = await download(`${base}${file?.download_url}`)
    t.equal(got.status, 200)
    t.strictSame(got.body, PNG)
    t.match(got.headers.get('content-type'), 'image/png')
  }
  t.equal((await download(`${s.baseUrl()}/files/refs/file_${'A'.repeat(32)}`)).status, 404)
})

t.test('a file that cannot be had: the words go on, nothing of the error crosses, and alone it is a dead letter', async (t) => {
  const s = await stand(t, { files: 'fetch_timeout: 1s' })
  const { xagent, legacyId } = await openChannel(s)
  s.connector.media.fault = () => ({ status: 404, body: 'Get "https://platform.example/bot7000001:AAinvented-token-0000000000000000000/getFile": not found' })
  s.connector.push(legacyId, { text: 'look', files: [{ type: 'image', bytes: PNG }] })
  const { payload } = await xagent.waitFor('message')
  t.match(payload, { text: 'look' })
  t.notOk('files' in payload)
  s.connector.push(legacyId, { text: '', files: [{ type: 'image', bytes: PNG }] })
  await until(async () => (await s.metric('messages_total', { direction: 'inbound', outcome: 'empty' })) === 1, 'the dead letter')
  t.equal(await s.metric('dead_letters_total', { reason: 'empty_message' }), 1)
  t.equal(await s.metric('deviations_total', { reason: 'file_lost' }), 2)
  t.notMatch(s.logText(), /AAinvented/)
})

t.test('a download that fails for now is tried again while the message waits, and keeps its place', async (t) => {
  const s = await stand(t)
  const { xagent, legacyId } = await openChannel(s)
  let failures = 2
  s.connector.media.fault = () => (failures-- > 0 ? { status: 500, body: 'later' } : null)
  s.connector.push(legacyId, { text: 'first', files: [{ type: 'image', bytes: PNG }] })
  s.connector.push(legacyId, { text: 'second' })
  await xagent.events.atLeast('message', 2)
  t.strictSame(xagent.received.map(({ text }) => text), ['first', 'second'])
  t.equal(filesOf(xagent.received[0]?.payload ?? {}).length, 1)
})

t.test('a re-push with new references is absorbed, and what was not fetched comes from the new ones', async (t) => {
  const s = await stand(t)
  const { xagent, legacyId } = await openChannel(s)
  const first = s.connector.push(legacyId, { text: 'look', messageId: '77', files: [{ type: 'image', bytes: PNG }] })
  const old = (first.payload['media'] as { media_ref: string }[])[0]?.media_ref
  s.connector.media.fault = (ref) => (ref === old ? { status: 500, body: '' } : null)
  s.connector.push(legacyId, { text: 'look', messageId: '77', files: [{ type: 'image', bytes: PNG }] })
  const { payload } = await xagent.waitFor('message')
  t.equal(filesOf(payload).length, 1)
  await until(async () => (await s.metric('messages_total', { outcome: 'absorbed' })) === 1, 'absorbed')
  t.equal(xagent.received.length, 1)
})

t.test('lazy: nothing is fetched before xAgent asks, and then once', async (t) => {
  const s = await stand(t, { files: 'inbound: lazy' })
  const { xagent, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: '', files: [{ type: 'image', bytes: PNG, filename: 'a.png' }] })
  const { payload } = await xagent.waitFor('message')
  const fetched = (): number => s.connector.events.all('http').filter(({ path }) => path.includes('/refs/')).length
  t.equal(fetched(), 0)
  const [file] = filesOf(payload)
  t.notOk(file !== undefined && 'byte_size' in file && file.byte_size === 0, 'no size is made up')
  for (let i = 0; i < 2; i += 1) t.strictSame((await download(`${s.baseUrl()}${file?.download_url}`)).body, PNG)
  t.equal(fetched(), 1)
})

t.test('lazy: after a re-push with new references the file comes from these', async (t) => {
  const s = await stand(t, { files: 'inbound: lazy' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  await xagent.terminate()
  const push = () => s.connector.push(legacyId, { text: 'look', messageId: '41', files: [{ type: 'image', bytes: PNG, filename: 'a.png' }] })
  const [gone] = mediaOf(push().payload)
  s.connector.media.fault = (ref) => (ref === gone ? { status: 404, body: '' } : null)
  await until(() => readdirSync(join(s.folder, 'files')).some((name) => name.endsWith('.json')), 'the file is remembered')
  push()
  await until(async () => (await s.metric('messages_total', { direction: 'inbound', outcome: 'absorbed' })) === 1, 'the re-push is absorbed')
  const back = s.xagent()
  await back.connect()
  await back.openChannel(channelId)
  const [file] = filesOf((await back.waitFor('message')).payload)
  t.strictSame((await download(`${s.baseUrl()}${file?.download_url}`)).body, PNG)
})

t.test('eager: new references are known after a restart, too', async (t) => {
  const s = await stand(t, { store: 'lmdb' })
  const { channelId, legacyId } = await openChannel(s)
  const push = () => s.connector.push(legacyId, { text: 'look', messageId: '41', files: [{ type: 'image', bytes: PNG, filename: 'a.png' }] })
  s.connector.media.fault = () => ({ status: 503, body: '' })
  const [gone] = mediaOf(push().payload)
  push()
  await until(async () => (await s.metric('messages_total', { direction: 'inbound', outcome: 'absorbed' })) === 1, 'the re-push is absorbed')
  await s.restartGateway()
  s.connector.media.fault = (ref) => (ref === gone ? { status: 404, body: '' } : null)
  const back = s.xagent()
  await back.connect()
  await back.openChannel(channelId)
  t.equal(filesOf((await back.waitFor('message')).payload).length, 1)
})

t.test('an instance with a folder of its own gets the files of waiting messages from the connector again', async (t) => {
  const s = await stand(t, { store: 'lmdb' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  await xagent.terminate()
  s.connector.push(legacyId, { text: 'look', files: [{ type: 'image', bytes: PNG, filename: 'a.png' }] })
  await until(() => readdirSync(join(s.folder, 'files')).some((name) => name.endsWith('.json')), 'the file is copied')
  await s.restartGateway(() => rm(join(s.folder, 'files'), { recursive: true }))
  const back = s.xagent()
  await back.connect()
  await back.openChannel(channelId)
  const [file] = filesOf((await back.waitFor('message')).payload)
  t.match(file, { type: 'image', mime_type: 'image/png', byte_size: PNG.length, filename: 'a.png' })
  t.strictSame((await download(`${s.baseUrl()}${file?.download_url}`)).body, PNG)
})

t.test('a URL of another host is not fetched unless it is listed', async (t) => {
  const s = await stand(t, { files: 'fetch_timeout: 1s' })
  const { xagent, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'look', fields: { media: [{ media_type: 'image', media_ref: 'r1', download_url: 'http://169.254.169.254/latest/meta-data' }] } })
  const { payload } = await xagent.waitFor('message')
  t.notOk('files' in payload)
  t.ok(s.logs.some(({ code }) => code === 'file_host_not_allowed'))
})

t.test('a final with text and files: text, then each file, one ack; the connector gets the bytes under its own references', async (t) => {
  const s = await stand(t)
  const channel = await openChannel(s)
  s.connector.push(channel.legacyId, { text: 'send me both' })
  await channel.xagent.waitFor('message')
  const refs = [await upload(s, channel, PNG, 'a.png'), await upload(s, channel, PDF, 'plän.pdf')]
  const files = [{ type: 'image', file_ref: refs[0] }, { type: 'file', file_ref: refs[1], filename: 'plän.pdf' }] as never
  t.match(await channel.xagent.sendFinal(channel.channelId, { messageId: 'f1', text: 'here', files }), { payload: { status: 'accepted' } })
  t.strictSame(s.connector.sent.map(({ toolId }) => toolId), ['telegram_message_send', 'telegram_message_send_media', 'telegram_message_send_media'])
  const uploads = s.connector.events.all('upload')
  t.strictSame(uploads.map(({ bytes }) => createHash('sha256').update(bytes).digest('hex')), [PNG, PDF].map((bytes) => createHash('sha256').update(bytes).digest('hex')))
  t.strictSame(uploads.map(({ channelId, filename }) => [channelId, filename]), [[channel.legacyId, 'a.png'], [channel.legacyId, 'plän.pdf']])
  t.strictSame(s.connector.sent.slice(1).map(({ arguments: args }) => args['media_ref']), uploads.map(({ ref }) => ref))
  const again = [await upload(s, channel, PNG, 'a.png'), await upload(s, channel, PDF, 'plän.pdf')]
  const same = [{ type: 'image', file_ref: again[0] }, { type: 'file', file_ref: again[1], filename: 'plän.pdf' }] as never
  t.match(await channel.xagent.sendFinal(channel.channelId, { messageId: 'f1', text: 'here', files: same }), { payload: { status: 'duplicate' } })
  t.match(await channel.xagent.sendFinal(channel.channelId, { messageId: 'f2', text: 'x', files: [{ type: 'image', file_ref: 'file_unknown' }] as never }), { payload: { status: 'rejected', code: 'file_not_available', retryable: false } })
})

t.test('text and three files: the second fails for now, the gateway restarts, xAgent redelivers: everything exactly once', async (t) => {
  const s = await stand(t, { store: 'lmdb' })
  const channel = await openChannel(s)
  s.connector.push(channel.legacyId, { text: 'send me three' })
  await channel.xagent.waitFor('message')
  const final = async () => ({
    messageId: 'f1', text: 'here',
    files: await Promise.all(['a', 'b', 'c'].map(async (name) => ({ type: 'image', file_ref: await upload(s, channel, Buffer.concat([PNG, Buffer.from(name)]), `${name}.png`), filename: `${name}.png` }))) as never,
  })
  s.connector.media.refuse = ({ filename }) => (filename === 'b.png' ? 503 : null)
  t.match(await channel.xagent.sendFinal(channel.channelId, await final()), { payload: { status: 'rejected', code: 'target_temporarily_unavailable', retryable: true } })
  await s.restartGateway()
  s.connector.media.refuse = () => null
  const xagent = s.xagent()
  await xagent.connect()
  await xagent.openChannel(channel.channelId)
  t.match(await xagent.sendFinal(channel.channelId, await final()), { payload: { status: 'accepted' } })
  t.strictSame(s.connector.events.all('upload').map(({ filename }) => filename), ['a.png', 'b.png', 'c.png'])
  t.strictSame(s.connector.sent.map(({ toolId }) => toolId), ['telegram_message_send', ...Array<string>(3).fill('telegram_message_send_media')])
  t.equal(await s.metric('ledger_imbalance', { direction: 'outbound' }), 0)
})

t.test('WeChat: a file goes to the person who is answered; Feishu: what is no picture goes as a link', async (t) => {
  const wechat = await stand(t, { kind: 'wechat' })
  const ann = await openChannel(wechat)
  wechat.connector.push(ann.legacyId, { text: 'send it', senderId: 'u_ann@im.wechat' })
  await ann.xagent.waitFor('message')
  t.match(await ann.xagent.sendFinal(ann.channelId, { messageId: 'f1', text: '', files: [{ type: 'image', file_ref: await upload(wechat, ann, PNG, 'a.png') }] as never }), { payload: { status: 'accepted' } })
  t.match(wechat.connector.events.all('upload'), [{ fields: { recipient_ref: 'u_ann@im.wechat', reply_token: /^ctx-u_ann/ } }])
  t.match(wechat.connector.sent, [{ toolId: 'wechat_message_send_media', to: 'u_ann@im.wechat' }])

  const feishu = await stand(t, { kind: 'feishu', publicUrl: 'https://gateway.example/xa' })
  const sam = await openChannel(feishu)
  feishu.connector.push(sam.legacyId, { text: 'the plan?' })
  await sam.xagent.waitFor('message')
  const ref = await upload(feishu, sam, PDF, 'plan.pdf')
  t.match(await sam.xagent.sendFinal(sam.channelId, { messageId: 'f1', text: 'here', files: [{ type: 'file', file_ref: ref }, { type: 'image', file_ref: await upload(feishu, sam, PNG, 'a.png') }] as never }), { payload: { status: 'accepted' } })
  t.strictSame(feishu.connector.sent.map(({ toolId, text }) => [toolId, text]), [
    ['feishu_message_send', 'here'], ['feishu_message_send', `plan.pdf: https://gateway.example/xa/files/refs/${ref}`], ['feishu_message_send_image', ''],
  ])
})

t.test('an agent calls the file tool itself: its file_ref becomes the connector\'s reference', async (t) => {
  const s = await stand(t)
  const channel = await openChannel(s)
  const card = await channel.xagent.fetchJson('/connector-card.json')
  const tool = (card['tools'] as { tool_id: string; input_schema: { properties: object; required: string[] } }[]).find(({ tool_id }) => tool_id === 'telegram_message_send_media')
  t.ok(tool !== undefined && 'file_ref' in tool.input_schema.properties && !('media_ref' in tool.input_schema.properties))
  const ref = await upload(s, channel, PNG, 'a.png')
  const call = (fileRef: string, id: string) => channel.xagent.request('tool.invoke', channel.channelId, { tool_id: 'telegram_message_send_media', arguments: { connector_channel_id: channel.channelId, file_ref: fileRef }, context: { tool_call_id: id } })
  t.match(await call(ref, 'c1'), { type: 'tool.invoke.ack', payload: { tool_id: 'telegram_message_send_media', result: { status: 'sent' } } })
  t.equal(s.connector.toolCalls.at(-1)?.arguments['media_ref'], s.connector.events.all('upload')[0]?.ref)
  t.match(await call('file_unknown', 'c2'), { error: { code: 'file_not_available' } })
  t.match(await call(ref, 'c1'), { payload: { result: { status: 'sent' } } })
  t.equal(s.connector.toolCalls.length, 1, 'a repeated call runs once')
})

t.test('Bob writes while the file of an agent\'s call is uploaded: the call does not reach him', async (t) => {
  const s = await stand(t, { kind: 'feishu' })
  const channel = await openChannel(s)
  s.connector.push(channel.legacyId, { text: 'from Ann', senderId: 'ou_ann' })
  await channel.xagent.waitFor('message')
  await accepted(s, 1)
  s.connector.media.refuse = async () => {
    s.connector.push(channel.legacyId, { text: 'from Bob', senderId: 'ou_bob' })
    await waiting(s, 1)
    return null
  }
  const fileRef = await upload(s, channel, PNG, 'a.png')
  const call = () => channel.xagent.request('tool.invoke', channel.channelId, { tool_id: 'feishu_message_send_image', arguments: { file_ref: fileRef }, context: { tool_call_id: 'c1' } })
  t.match(await call(), { error: { code: 'reply_target_moved' } })
  t.strictSame(s.connector.toolCalls, [])
})

t.test('slow files of one channel do not hold up those of another', async (t) => {
  const s = await stand(t, { files: 'fetch_timeout: 20s' })
  const [slow, fast] = [await openChannel(s), await openChannel(s)]
  let failing = true
  const pushed = s.connector.push(slow.legacyId, { text: 'slow', files: Array.from({ length: 20 }, () => ({ type: 'image' as const, bytes: PNG })) })
  const refs = new Set((pushed.payload['media'] as { media_ref: string }[]).map(({ media_ref }) => media_ref))
  s.connector.media.fault = (ref) => (failing && refs.has(ref) ? { status: 503, body: '' } : null)
  s.connector.push(fast.legacyId, { text: 'fast', files: [{ type: 'image', bytes: PNG }] })
  const { payload } = await fast.xagent.waitFor('message')
  t.equal(filesOf(payload).length, 1)
  failing = false
  t.equal(filesOf((await slow.xagent.waitFor('message')).payload).length, 20)
})

t.test('staged bytes that have vanished refuse the final for good and harm nothing else', async (t) => {
  const s = await stand(t)
  const channel = await openChannel(s)
  s.connector.push(channel.legacyId, { text: 'hello' })
  await channel.xagent.waitFor('message')
  const ref = await upload(s, channel, PNG, 'a.png')
  await rm(join(s.folder, 'files', ref))
  t.match(await channel.xagent.sendFinal(channel.channelId, { messageId: 'f1', text: '', files: [{ type: 'image', file_ref: ref }] as never }), { payload: { status: 'rejected', code: 'file_not_available', retryable: false } })
  t.match(await channel.xagent.sendFinal(channel.channelId, { messageId: 'f2', text: 'still here' }), { payload: { status: 'accepted' } })
})

t.test('lazy: a file that an agent sends on is the same content before and after it was fetched', async (t) => {
  const s = await stand(t, { files: 'inbound: lazy' })
  const channel = await openChannel(s)
  s.connector.push(channel.legacyId, { text: 'keep these', files: [0, 1].map((i) => ({ type: 'image' as const, filename: 'a.png', bytes: Buffer.concat([PNG, Buffer.from(String(i))]) })) })
  const [first, second] = filesOf((await channel.xagent.waitFor('message')).payload)
  const send = (file: FileItem | undefined) => channel.xagent.sendFinal(channel.channelId, { messageId: 'f1', text: 'here', files: [{ type: 'image', file_ref: file?.file_ref }] as never })
  let refusals = 1
  s.connector.media.refuse = () => (refusals-- > 0 ? 503 : null)
  t.match(await send(first), { payload: { status: 'rejected', retryable: true } })
  t.match(await send(first), { payload: { status: 'accepted' } })
  t.match(await send(second), { payload: { status: 'rejected', code: 'message_id_conflict' } })
})
