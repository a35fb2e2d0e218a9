/** "Is typing" never stands in the way of a message (v2 §8). */
import t from 'tap'
import { run } from '../helper/people.js'
import { openChannel, stand } from '../helper/stand.js'

const ANN = 'u_ann@im.wechat'

t.test('a typing tool that never answers does not take the tool links away from messages', async (t) => {
  const s = await stand(t, { kind: 'wechat', config: 'delivery: { outbound_wait: 2s, drain_timeout: 500ms }' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.onTool(({ toolId }) => (toolId === 'wechat_typing' ? { kind: 'no_answer', answerAfter: new Promise(() => {}) } : undefined))
  for (let i = 0; i < 4; i += 1) {
    s.connector.push(legacyId, { text: `question ${i}`, senderId: ANN })
    await xagent.waitFor('message', ({ text }) => text === `question ${i}`)
    t.match(await run(xagent, channelId, `m${i}`, `answer ${i}`), { payload: { status: 'accepted' } }, `answer ${i}`)
  }
})

t.test('the end of "is typing" reaches the connector after its beginning, also when that takes long', async (t) => {
  const s = await stand(t, { kind: 'wechat' })
  const { xagent, channelId, legacyId } = await openChannel(s)
  s.connector.push(legacyId, { text: 'hello', senderId: ANN })
  await xagent.waitFor('message')
  let open = (): void => {}
  const passed = new Promise<void>((resolve) => { open = resolve })
  s.connector.onTool(async ({ arguments: args }) => {
    if (args['typing'] === true) await passed
    return undefined
  })
  xagent.sendActivity(channelId, 'thinking')
  await s.connector.waitFor('tool', ({ arguments: args }) => args['typing'] === true)
  xagent.sendActivity(channelId, 'idle')
  await xagent.ping()
  // Whether it overtakes shows within a moment, or never.
  await s.connector.waitFor('tool', ({ arguments: args }) => args['typing'] === false, 500).catch(() => undefined)
  open()
  await s.connector.events.atLeast('sent', 2)
  t.strictSame(s.connector.sent.map(({ arguments: args }) => args['typing']), [true, false])
})
