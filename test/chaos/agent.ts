/**
 * xAgent for one connector: dials whichever instance owns it, re-opens its channels, takes every message once, and answers each in
 * its turn with a final that it redelivers under the same id until it has a terminal ack.
 */
import { setTimeout as after } from 'node:timers/promises'
import { SimXagent } from '../../src/sim/xagent.js'
import type { ReceivedMessage } from '../../src/sim/xagent-events.js'
import type { Instance } from './gateways.js'
import { KEY } from './gateways.js'
import type { Random } from './random.js'

const REDELIVER_MS = 300
const ANSWER_MS = 8_000

export interface Ending {
  readonly status: 'accepted' | 'rejected'
  readonly code: string | null
}

export class Agent {
  readonly xagent: SimXagent
  /** Words that were taken, with how many messages carried them; the id of a redelivery is known. */
  readonly taken = new Map<string, number>()
  /** When each was taken, Unix ms. */
  readonly takenAt: number[] = []
  readonly endings = new Map<string, Ending>()
  /** Words whose answer was accepted. */
  readonly accepted = new Set<string>()
  /** No answer is given to messages meanwhile. */
  silent = false
  /** Whether some messages are refused for now. */
  moody = true
  readonly #known = new Set<string>()
  readonly #queues = new Map<string, Promise<void>>()
  #target = ''
  #stopped = false

  constructor(private readonly name: string, private readonly instances: readonly Instance[], private readonly random: Random) {
    const url = (): string => this.#target
    this.xagent = new SimXagent({ get baseUrl() { return url() }, apiKey: KEY })
    this.xagent.onMessage((message) => this.#policy(message))
  }

  /** Stays connected until it is stopped. */
  async run(): Promise<void> {
    while (!this.#stopped) {
      if (!this.xagent.connected) await this.#dial()
      await after(100)
    }
  }

  stop(): void {
    this.#stopped = true
  }

  /** Finals that have no terminal ack yet. */
  get unanswered(): number {
    return this.#known.size - this.endings.size
  }

  async #dial(): Promise<void> {
    for (const instance of this.instances) {
      if (!(await instance.owned()).includes(this.name) || instance.ports === null) continue
      this.#target = `http://127.0.0.1:${instance.ports.xagent}/${this.name}`
      await Promise.race([this.xagent.reconnect(), after(3_000)]).catch(() => {})
      if (this.xagent.connected) return
    }
  }

  #policy(message: ReceivedMessage): 'accepted' | 'none' | 'swallowed' | { kind: 'rejected'; code: string; retryable: true } {
    if (this.silent) return 'none'
    const known = this.#known.has(`${message.channelId} ${message.messageId}`)
    if (this.moody && !known && this.random.chance(0.02)) return { kind: 'rejected', code: 'channel_busy', retryable: true }
    if (!known) this.#take(message)
    return this.moody && this.random.chance(0.02) ? 'swallowed' : 'accepted'
  }

  #take(message: ReceivedMessage): void {
    const { channelId, messageId, text } = message
    this.#known.add(`${channelId} ${messageId}`)
    this.taken.set(text, (this.taken.get(text) ?? 0) + 1)
    this.takenAt.push(Date.now())
    const before = this.#queues.get(channelId) ?? Promise.resolve()
    this.#queues.set(channelId, before.then(() => this.#answer(channelId, `f_${messageId}`, `re:${text}`)))
  }

  /** One run: thinking, a final, idle. Without a link it waits for the next. */
  async #answer(channelId: string, messageId: string, text: string): Promise<void> {
    while (!this.#stopped) {
      const ended = await this.#once(channelId, messageId, text).catch(() => null)
      if (ended !== null) {
        if (ended.status === 'accepted') this.accepted.add(text.replace(/^re:/, ''))
        return void this.endings.set(`${channelId} ${messageId}`, ended)
      }
      await after(REDELIVER_MS)
    }
  }

  async #once(channelId: string, messageId: string, text: string): Promise<Ending | null> {
    if (!this.xagent.connected) return null
    this.xagent.sendActivity(channelId, 'thinking')
    const link = new AbortController()
    const answer = await Promise.race([
      this.xagent.sendFinal(channelId, { messageId, text }),
      after(ANSWER_MS, null, { signal: link.signal }),
    ]).finally(() => link.abort())
    const payload = answer?.payload as { status?: string; code?: string; retryable?: boolean } | undefined
    const accepted = payload?.status === 'accepted' || payload?.status === 'duplicate'
    if (!accepted && !(payload?.status === 'rejected' && payload.retryable === false)) return null
    if (this.xagent.connected) this.xagent.sendActivity(channelId, 'idle')
    return accepted ? { status: 'accepted', code: null } : { status: 'rejected', code: payload?.code ?? null }
  }
}
