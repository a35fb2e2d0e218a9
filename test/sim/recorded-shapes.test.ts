import t from 'tap'
import type { KindName, UserMessage } from '../../src/sim/connector-kind.js'
import { startSimConnector, type SimConnector } from '../../src/sim/connector.js'
import { SimXagent } from '../../src/sim/xagent.js'
import type { PacketFields, WirePacket } from '../../src/sim/wire-packet.js'
import { recording, shapeOf, type RecordedCase } from './recording.js'

/** What a person did when the push of a case was recorded, besides writing the recorded words. */
const BESIDES: Readonly<Record<string, Omit<UserMessage, 'text'>>> = {
  'push: image': { files: [{ type: 'image' }] },
  'push: document': { files: [{ type: 'file', filename: 'plan.pdf' }] },
  'push: album (1 of 2)': { files: [{ type: 'image' }] },
  'push: album (2 of 2)': { files: [{ type: 'image' }] },
  'push: no message id': { messageId: '' },
  'push: group': { group: true },
  'push: group, bot mentioned': { group: true },
  'push: group image': { group: true, files: [{ type: 'image' }] },
  'push: group, bare mention': { group: true },
  "push: the bot's own message": { state: 'own' },
}
/** The connector's own wording for a file that it could not fetch; the simulated one has no files to fetch. */
const NOT_PLAYED = 'push: media that could not be fetched'

for (const kind of ['telegram', 'wechat', 'feishu'] as const) {
  void t.test(`the simulated ${kind} connector answers in the recorded shapes`, async (t) => {
    const connector = await startSimConnector({ kind })
    t.teardown(() => connector.stop())
    const xagent = new SimXagent({ baseUrl: connector.url })
    t.teardown(() => xagent.terminate())
    const stage = new Stage(kind, connector, xagent)
    for (const recorded of recording(kind).values()) {
      if (recorded.case === NOT_PLAYED) continue
      const seen = await stage.play(recorded)
      t.same(shapeOf(seen), shapeOf(recorded.body ?? recorded.packet), recorded.case)
    }
  })
}

/** Plays the recorded cases in their order: each stands on what those before it have done. */
class Stage {
  #channelId = ''
  #sessionId = ''

  constructor(private readonly kind: KindName, private readonly connector: SimConnector, private readonly xagent: SimXagent) {}

  async play(recorded: RecordedCase): Promise<unknown> {
    const { xagent } = this
    if (recorded.case.startsWith('push: ')) return this.#push(recorded)
    if (recorded.case.startsWith('sign-in: ')) return this.#signIn(recorded)
    if (recorded.case.startsWith('tool: ')) return this.#tool(recorded)
    switch (recorded.case) {
      case 'card': return xagent.fetchJson('/connector-card.json')
      case 'health': return xagent.fetchJson('/health')
      case 'packet before hello':
        await xagent.dial()
        return xagent.request('ping', '', {})
      case 'hello with another card id': return xagent.hello({ connector_card_id: 'im.other' })
      case 'hello': return xagent.hello()
      case 'channel.open, first time': return this.#open('')
      case 'channel.open again': return this.#open(this.#channelId)
      case 'channel.open with an unknown id': return xagent.request('channel.open', 'cch_unknown', {})
      case 'tool on a channel that is not open': return xagent.request('tool.invoke', 'cch_unknown', recorded.request?.payload ?? {})
      case 'not JSON':
        xagent.sendRaw('{oops')
        return xagent.events.next('error')
      default: return xagent.request(recorded.request?.type ?? '', this.#channelId, recorded.request?.payload ?? {})
    }
  }

  async #open(channelId: string): Promise<WirePacket> {
    const answer = await this.xagent.request('channel.open', channelId, {})
    this.#channelId = answer.connector_channel_id ?? ''
    return answer
  }

  async #push(recorded: RecordedCase): Promise<WirePacket> {
    const payload = recorded.packet?.['payload'] as { raw_text: string }
    const next = this.xagent.events.next('packet', ({ type }) => type === 'message.push')
    this.connector.push(this.#channelId, { text: payload.raw_text, ...BESIDES[recorded.case] })
    return next
  }

  /** The platform's answers are scripted with the recorded error; what the connector refuses by itself is not. */
  #tool(recorded: RecordedCase): Promise<WirePacket> {
    const error = recorded.packet?.['error'] as PacketFields['error']
    const scripted = /platform answers|connection reset|not JSON/.test(recorded.case) && error !== undefined
    this.connector.onTool(() => (scripted ? { kind: 'error', error } : undefined))
    return this.xagent.request('tool.invoke', this.#channelId, recorded.request?.payload ?? {})
  }

  async #signIn(recorded: RecordedCase): Promise<unknown> {
    const flow_id = this.connector.kind.signIn.flowId
    if (recorded.case.startsWith('sign-in: auth.start.ack')) {
      const answer = await this.xagent.request('auth.start', this.#channelId, { flow_id, input: { bot_token: 'x', chat_id: '880000042' } })
      this.#sessionId = String(answer.payload?.['auth_session_id'])
      return answer
    }
    if (recorded.case === 'sign-in: connection.descriptor.push') return this.#descriptorPush(flow_id)
    return this.#authenticatedLook() ?? this.xagent.request('auth.status', this.#channelId, { flow_id, auth_session_id: this.#sessionId })
  }

  #authenticatedLook(): WirePacket | undefined {
    const looks = this.xagent.events.all('packet').filter(({ type }) => type === 'auth.status.ack')
    return looks.find(({ payload }) => payload?.['status'] === 'authenticated')
  }

  /** The push was recorded before the look that shows the sign-in as done; here the look comes first. */
  async #descriptorPush(flow_id: string): Promise<WirePacket> {
    const next = this.xagent.events.next('packet', ({ type }) => type === 'connection.descriptor.push')
    await this.xagent.request('auth.status', this.#channelId, { flow_id, auth_session_id: this.#sessionId })
    return next
  }
}
