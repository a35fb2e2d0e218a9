import t from 'tap'
import { answer } from './fake-connector.js'
import { ask, invoke, rig } from './rig.js'

/** Links whose hello offers what the test says. */
async function changing(test: Parameters<typeof rig>[0], toolLinks = 0) {
  const offered = { profile: 'xagent.im.v1' }
  const links = await rig(test, {}, { toolLinks, supportedProfiles: () => [offered.profile] })
  await links.next('up')
  return { links, offered }
}

t.test('another profile: the main link is dialled anew at once, with the new hello', async (t) => {
  const { links, offered } = await changing(t)
  offered.profile = 'xagent.im.v2'
  links.rehello('the Card has changed')
  t.match(await links.next('down'), { reason: 'the Card has changed' })
  links.clock.advance(0)
  await links.next('up', 2)
  t.strictSame(links.connector.packets('connector.hello').map(({ payload }) => payload?.['supported_profiles']), [['xagent.im.v1'], ['xagent.im.v2']])
  t.strictSame(links.names(), ['up', 'down', 'up'], 'no dial failed')
})

t.test('while a dial is waited for it is made at once', async (t) => {
  const { links } = await changing(t)
  links.connector.options = { upgradeStatus: 503 }
  links.connector.socket().terminate()
  await links.next('down')
  links.clock.advance(5_000)
  await links.next('dial failed')
  links.connector.options = {}
  links.rehello('the Card has changed')
  links.clock.advance(0)
  await links.next('up', 2)
})

t.test('a tool link that is free goes, one that is busy goes after its answer', async (t) => {
  const { links, offered } = await changing(t, 1)
  const call = invoke(links, 'call_1')
  const called = await links.connector.packet('tool.invoke')
  offered.profile = 'xagent.im.v2'
  links.rehello('the Card has changed')
  await links.next('down')
  links.clock.advance(0)
  await links.next('up', 2)
  answer(called.socket, called.packet)
  t.match(await call.answers.waitFor(), { ok: true })
  const next = invoke(links, 'call_2')
  const again = await links.connector.packet('tool.invoke', 2)
  t.not(again.socket, called.socket)
  answer(again.socket, again.packet)
  t.match(await next.answers.waitFor(), { ok: true })
  t.strictSame(links.connector.packets('connector.hello').at(-1)?.payload?.['supported_profiles'], ['xagent.im.v2'])
})

t.test('nothing is sent on a link that is not up', async (t) => {
  const { links } = await changing(t)
  const packet = { packetId: 'p' as never, type: 'chat.activity', payload: { status: 'idle' } }
  t.equal(links.main.send(packet), true)
  await links.connector.packet('chat.activity')
  await links.main.close('shutting down')
  t.equal(links.main.send(packet), false)
  links.rehello('the Card has changed')
  t.match(await ask(links, 'channel.open').answers.waitFor(), { ok: false })
})
