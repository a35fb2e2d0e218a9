/** The scripted conversation. Each scene waits for what must happen, and throws when it does not. */
import { setTimeout as later } from 'node:timers/promises'
import type { UserMessage } from '../sim/connector-kind.js'
import type { SimConnector } from '../sim/connector.js'
import type { SimXagent } from '../sim/xagent.js'
import type { ReceivedMessage } from '../sim/xagent-events.js'
import { Scrape } from './demo-metrics.js'
import type { Screen } from './demo-screen.js'
import { shortId, type Stage } from './demo-stage.js'

export interface Played {
  /** Pushes that reached the gateway. */
  readonly received: number
  readonly redelivered: number
  readonly keptOverOutage: number
  readonly lostByConnector: number
  readonly deadLetters: number
}

const WAIT_MS = 8_000
/** Between scenes, so that a person can follow. */
const PAUSE_MS = 600
/** How long xAgent stays away, and the connector down. */
const AWAY_MS = 1_000
const quoted = (text: string): string => `"${text}"`

export class Conversation {
  readonly #connector: SimConnector
  readonly #xagent: SimXagent
  #channelId = ''
  #legacyChannelId = ''
  #replies = 0

  constructor(private readonly stage: Stage, private readonly screen: Screen) {
    this.#connector = stage.connector
    this.#xagent = stage.xagent
    this.#xagent.events.on('message', (message) => this.#show(message))
    this.#connector.events.on('sent', ({ text, to }) => screen.says('connector', `telegram_message_send → chat ${to}: ${quoted(text)}`))
  }

  /** All scenes in order; answers what the gateway's metrics must say afterwards. */
  async play(): Promise<Played> {
    await this.#signIn()
    await this.#scene(() => this.#roundTrip())
    await this.#scene(() => this.#redelivery())
    const keptOverOutage = await this.#scene(() => this.#outage())
    await this.#scene(() => this.#restart())
    await this.#scene(() => this.#rejection())
    const { events, lost } = this.#connector
    return { received: events.all('push').length, redelivered: 1, keptOverOutage, lostByConnector: lost.length, deadLetters: 1 }
  }

  /** Lets a scene end with nothing pending in the gateway. */
  async #scene<T>(play: () => Promise<T>): Promise<T> {
    await later(PAUSE_MS)
    const result = await play()
    expect((await this.#metric((scrape) => scrape.sum('pending_messages'), 0)) === 0, 'nothing is left pending')
    return result
  }

  /** Somebody types a line: it goes to xAgent, which answers it. */
  async echo(text: string): Promise<void> {
    const message = await this.#delivered({ text })
    await this.#reply(`You said: ${message.text}`)
  }

  async #signIn(): Promise<void> {
    const { screen } = this
    screen.scene('xAgent dials the gateway as if that were a Connector Server, and signs in')
    await this.#xagent.connect()
    const card = await this.#xagent.fetchJson('/connector-card.json')
    screen.says('xagent', `hello accepted; the Card lists ${JSON.stringify((card['supports'] as { profiles: unknown }).profiles)}`)
    this.#channelId = (await this.#xagent.openChannel()).channelId
    const input = { bot_token: '7000001:AAinvented', chat_id: '880000042' }
    const answer = await this.#xagent.request('auth.start', this.#channelId, { flow_id: 'telegram_bot_binding', input })
    expect(answer.payload?.['status'] === 'authenticated', 'the sign-in is authenticated')
    this.#legacyChannelId = this.#connector.channels().find(({ signedIn }) => signedIn)?.channelId ?? ''
    screen.says('xagent', `channel ${this.#channelId} is signed in`)
  }

  async #roundTrip(): Promise<void> {
    this.screen.scene('1  A message and its answer: v1 push → v2 chat.message → ack; v2 final → v1 tool call → ack')
    await this.#delivered({ text: 'Could you check the north pump?' })
    this.#xagent.sendActivity(this.#channelId, 'thinking')
    await this.#reply('The north pump runs at 1480 rpm.')
  }

  async #redelivery(): Promise<void> {
    this.screen.scene('2  An ack is lost: the message comes again, with the same message_id and a new packet_id')
    this.#xagent.onMessage(({ repeated }) => (repeated ? 'accepted' : 'swallowed'))
    const again = this.#xagent.events.next('message', ({ repeated }) => repeated, WAIT_MS)
    this.#push({ text: 'And the south pump?' })
    const second = await again
    const first = this.#xagent.received.find(({ messageId }) => messageId === second.messageId)
    expect(first !== undefined && first.packetId !== second.packetId, 'the redelivery has a new packet_id')
    this.screen.says('xagent', 'answers duplicate: it had taken the first one')
    this.#xagent.onMessage('accepted')
  }

  /** Answers how many messages waited. */
  async #outage(): Promise<number> {
    const { screen } = this
    screen.scene('3  xAgent is away: messages are kept, and flow in order when it re-opens its channel')
    await this.#xagent.terminate()
    screen.says('xagent', 'is gone')
    await this.#metric((scrape) => scrape.sum('xagent_connected'), 0)
    const texts = ['Still there?', 'The gauge shows 6 bar.', 'Now 7 bar.']
    for (const text of texts) this.#push({ text })
    const kept = await this.#metric((scrape) => scrape.sum('pending_messages', { direction: 'inbound' }), texts.length)
    screen.says('gateway', `keeps ${kept} messages (pending_messages in its metrics)`)
    await later(AWAY_MS)
    const before = this.#xagent.received.length
    const last = this.#xagent.events.next('message', ({ text }) => text === texts.at(-1), WAIT_MS)
    await this.#xagent.reconnect()
    await last
    const order = this.#xagent.received.slice(before).map(({ text }) => text)
    expect(JSON.stringify(order) === JSON.stringify(texts), 'the kept messages come once and in order')
    return kept
  }

  async #restart(): Promise<void> {
    const { screen } = this
    screen.scene('4  The connector restarts: xAgent keeps its link and its ids, and the gap is said honestly')
    await this.#connector.stop()
    screen.says('connector', 'has stopped')
    this.#connector.push(this.#legacyChannelId, { text: 'Anybody?' })
    screen.says('connector', `${quoted('Anybody?')} was written meanwhile: Telegram's connector loses it, nobody can bring it back`)
    await later(AWAY_MS)
    const opened = this.#connector.events.next('open', ({ asked }) => asked === this.#legacyChannelId, WAIT_MS)
    await this.#connector.start()
    await opened
    await this.#metric((scrape) => scrape.sum('legacy_gaps_total'), 1)
    await this.#delivered({ text: 'Back again.' })
    expect(this.#xagent.connected && this.#xagent.events.all('closed').length === 1, 'xAgent keeps its link over the restart')
  }

  async #rejection(): Promise<void> {
    this.screen.scene('5  xAgent refuses a message for good: it is not sent again, and kept as a dead letter with its reason')
    this.#xagent.onMessage({ kind: 'rejected', code: 'content_refused', retryable: false })
    await this.#delivered({ text: 'Something that is not allowed.' })
    await this.#metric((scrape) => scrape.sum('dead_letters_total', { reason: 'rejected' }), 1)
    this.#xagent.onMessage('accepted')
  }

  #push(message: UserMessage): void {
    this.screen.says('connector', `somebody writes ${quoted(message.text)} → message.push`)
    this.#connector.push(this.#legacyChannelId, message)
  }

  /** Pushes a message and waits until xAgent has seen it. */
  async #delivered(message: UserMessage): Promise<ReceivedMessage> {
    const next = this.#xagent.events.next('message', ({ text }) => text === message.text, WAIT_MS)
    this.#push(message)
    return next
  }

  async #reply(text: string): Promise<void> {
    const messageId = `a${(this.#replies += 1)}`
    this.screen.says('xagent', `chat.message (final) ${messageId}: ${quoted(text)}`)
    const ack = await this.#xagent.sendFinal(this.#channelId, { messageId, text })
    expect(ack.payload?.['status'] === 'accepted', 'the final is accepted')
    this.screen.says('xagent', `gets its chat.message.ack: ${String(ack.payload?.['status'])}`)
  }

  #show({ messageId, text, repeated }: ReceivedMessage): void {
    this.screen.says('xagent', `gets chat.message ${shortId(messageId)}: ${quoted(text)}${repeated ? ', again' : ''}`)
  }

  /** Waits until a metric has the expected value, and answers it. */
  async #metric(read: (scrape: Scrape) => number, expected: number): Promise<number> {
    return settled(this.stage.metricsUrl, read, (value) => value === expected)
  }
}

const SCRAPE_PAUSE_MS = 50

/** Scrapes until the value is as it must be; after a while answers whatever it is. */
export async function settled(metricsUrl: string, read: (scrape: Scrape) => number, good: (value: number) => boolean): Promise<number> {
  const until = Date.now() + WAIT_MS
  for (;;) {
    const value = read(await Scrape.of(metricsUrl))
    if (good(value) || Date.now() >= until) return value
    await later(SCRAPE_PAUSE_MS)
  }
}

function expect(holds: boolean, what: string): void {
  if (!holds) throw new Error(`not as scripted: ${what}`)
}
