/**
 * The whole system under faults: two gateway processes on a real Redis, connectors that lose what real ones lose, an xAgent that
 * refuses, forgets and falls silent. At the end every message must be in exactly one terminal state (DESIGN §8, the ledger).
 */
import { setTimeout as after } from 'node:timers/promises'
import type { CompletedRecord, DeadLetterRecord, InboundRecord } from '../../src/core/record.js'
import type { RouteName } from '../../src/protocol/ids.js'
import { startSimConnector, type SimConnector } from '../../src/sim/connector.js'
import { eachRecord } from '../../src/store/port.js'
import { RedisStore } from '../../src/store/redis.js'
import { redisServer, type RedisServer } from '../helper/redis-server.js'
import { Agent } from './agent.js'
import { Instance, KEY } from './gateways.js'
import { Random } from './random.js'

export interface ChaosOptions {
  readonly seed: number
  readonly seconds: number
  /** Channels of each connector. */
  readonly channels: number
  /** Messages a second, all connectors together. */
  readonly rate: number
  /** A line for whoever watches. */
  readonly say: (line: string) => void
}

export interface ChaosResult {
  /** Pushes that connectors made, those that they lost by themselves included. */
  readonly pushed: number
  /** Taken over: committed to the store. */
  readonly received: number
  readonly delivered: number
  readonly lost: number
  readonly duplicated: number
  readonly tool_calls_doubled: number
  readonly misdirected: number
  /** Finals that were accepted and that no person got. */
  readonly accepted_not_sent: number
  readonly expired: number
  readonly evicted: number
  readonly in_doubt: number
  readonly ledger_imbalance: number
  readonly faults: number
  readonly recovery_p99_ms: number
  /** What connectors of v1 lose: nobody listened, or a socket died unread, or a process before its commit. */
  readonly lost_by_v1: number
  /** What is wrong, in words; empty = nothing. */
  readonly wrong: readonly string[]
}

interface Push {
  readonly connector: string
  readonly at: number
  /** What became of it on the connector's side at first: written, queued or lost. */
  readonly outcome: string
}

const LEASE_MS = 1_000
const SETTLE_MS = 90_000
/** What was written so shortly before a kill or a cut may not have been read or committed; what was committed is told by the store. */
const WINDOW_MS = 5_000
const PEOPLE = ['u_ann@im.wechat', 'u_bob@im.wechat', 'u_cyd@im.wechat']

export async function chaos(options: ChaosOptions): Promise<ChaosResult> {
  const teardowns: (() => Promise<void>)[] = []
  try {
    return await new Chaos(options, await world(options, { teardown: (fn) => teardowns.push(fn) })).run()
  } finally {
    for (const fn of teardowns.reverse()) await fn().catch(() => {})
  }
}

interface World {
  readonly redis: RedisServer
  readonly connectors: ReadonlyMap<string, SimConnector>
  readonly instances: readonly Instance[]
  readonly agents: ReadonlyMap<string, Agent>
  readonly random: Random
}

async function world({ seed }: ChaosOptions, t: { teardown(fn: () => Promise<void>): void }): Promise<World> {
  const random = new Random(seed)
  const redis = await redisServer(t)
  const connectors = new Map<string, SimConnector>()
  for (const kind of ['telegram', 'wechat'] as const) {
    const connector = await startSimConnector({ kind, apiKey: KEY })
    t.teardown(async () => { if (connector.running) await connector.stop() })
    connectors.set(kind, connector)
  }
  const dialled = [...connectors].map(([name, { url }]) => ({ name, url }))
  const instances = [0, 1].map(() => new Instance(redis.url, dialled, LEASE_MS))
  for (const instance of instances) {
    t.teardown(async () => { await instance.end('SIGKILL'); instance.remove() })
    await instance.start()
  }
  const agents = new Map([...connectors.keys()].map((name) => [name, new Agent(name, instances, random)]))
  t.teardown(async () => { for (const agent of agents.values()) { agent.stop(); await agent.xagent.terminate() } })
  for (const agent of agents.values()) void agent.run()
  return { redis, connectors, instances, agents, random }
}

class Chaos {
  readonly #pushes = new Map<string, Push>()
  /** Legacy channel ids by connector. */
  readonly #channels = new Map<string, string[]>()
  readonly #faultsAt: number[] = []
  /** Moments at which something was cut: what was written shortly before may have been lost unread. */
  readonly #cuts: { readonly connector: string; readonly at: number }[] = []
  /** Words of messages that the store held when something was killed: these must end, whatever happened. */
  readonly #committed = new Set<string>()
  readonly #sent: { readonly connector: string; readonly channelId: string; readonly to: string; readonly text: string }[] = []
  readonly #knownLost = new Set<string>()
  #serial = 0

  constructor(private readonly options: ChaosOptions, private readonly world: World) {}

  async run(): Promise<ChaosResult> {
    const { seconds, say } = this.options
    await this.#openChannels()
    const end = Date.now() + seconds * 1_000
    const writing = this.#write(end)
    while (Date.now() < end - 2_000) {
      await after(this.world.random.between(1_500, 4_000))
      const { name, run } = this.#fault()
      this.#faultsAt.push(Date.now())
      say(`${((Date.now() - end) / 1_000 + seconds).toFixed(1).padStart(6)} s  ${name}`)
      await run()
    }
    await writing
    say('settling')
    await this.#settle()
    return this.#judge()
  }

  async #openChannels(): Promise<void> {
    for (const [name, connector] of this.world.connectors) {
      const agent = this.world.agents.get(name) as Agent
      await waitUntil(() => agent.xagent.connected, 30_000, `xAgent is connected to ${name}`)
      for (let i = 0; i < this.options.channels; i += 1) await agent.xagent.openChannel()
      const ids = connector.channels().map(({ channelId }) => channelId)
      for (const id of ids) connector.signIn(id)
      this.#channels.set(name, ids)
      connector.onTool((call) => this.#tool(call.toolId))
      connector.events.on('sent', ({ channelId, to, text, toolId }) => { if (!toolId.endsWith('_typing')) this.#sent.push({ connector: name, channelId, to, text }) })
      // What connectors know to have lost: nobody listened, or a backlog that a new message or a drop ended.
      connector.events.on('lost', ({ payload }) => this.#knownLost.add(String(payload['raw_text'])))
    }
  }

  /** One call in fifty fails for now; one in a hundred is done and never answered. */
  #tool(toolId: string): { kind: 'no_answer' } | { kind: 'error'; error: { code: string; message: string } } | undefined {
    const { random } = this.world
    if (toolId.endsWith('_typing')) return undefined
    if (random.chance(0.02)) return { kind: 'error', error: { code: 'tool_invoke_failed', message: toolId.startsWith('wechat') ? 'WeChat API HTTP 429' : 'Telegram API HTTP 429' } }
    return random.chance(0.01) ? { kind: 'no_answer' } : undefined
  }

  async #write(end: number): Promise<void> {
    const { random, connectors } = this.world
    const gapMs = 1_000 / this.options.rate
    for (let due = Date.now(); Date.now() < end; due += gapMs) {
      if (due > Date.now()) await after(due - Date.now())
      const name = random.of([...connectors.keys()])
      const connector = connectors.get(name) as SimConnector
      const channelId = random.of(this.#channels.get(name) ?? [])
      if (!connector.running) continue
      this.#serial += 1
      const sender = name === 'wechat' ? random.of(PEOPLE) : channelId
      const text = `${name} ${channelId} ${sender} ${this.#serial}`
      const { outcome } = connector.push(channelId, { text, messageId: String(9_000_000 + this.#serial), ...(name === 'wechat' && { senderId: sender }) })
      this.#pushes.set(text, { connector: name, at: Date.now(), outcome })
    }
  }

  #fault(): { readonly name: string; readonly run: () => Promise<void> } {
    const { random, instances, connectors, agents, redis } = this.world
    const instance = random.of(instances)
    const [name, connector] = random.of([...connectors])
    const agent = agents.get(name) as Agent
    const kill = async (...those: readonly Instance[]): Promise<void> => {
      cutAll()
      await Promise.all(those.map((one) => one.end('SIGKILL')))
      await this.#noteCommitted()
    }
    const cutAll = (): void => { for (const one of connectors.keys()) this.#cuts.push({ connector: one, at: Date.now() }) }
    return random.of([
      { name: 'kill -9 of an instance', run: async () => { await kill(instance); await after(random.between(200, 2_500)); await instance.start() } },
      { name: 'kill -9 of an instance', run: async () => { await kill(instance); await after(random.between(200, 2_500)); await instance.start() } },
      { name: 'both instances killed', run: async () => { await kill(...instances); await Promise.all(instances.map((one) => one.start())) } },
      { name: 'an instance paused past its lease', run: async () => { cutAll(); instance.pause(); await after(3 * LEASE_MS); instance.goOn(); cutAll() } },
      { name: 'SIGTERM and a new start of an instance', run: async () => { cutAll(); await instance.end('SIGTERM'); cutAll(); await instance.start() } },
      { name: 'Redis killed and started', run: async () => { await redis.stop(); await after(random.between(200, 2_000)); await redis.start() } },
      { name: 'Redis says nothing', run: async () => { redis.pause(); await after(random.between(500, 2_500)); redis.goOn() } },
      { name: `sockets of ${name} cut`, run: async () => { this.#cuts.push({ connector: name, at: Date.now() }); connector.dropSockets() } },
      { name: `${name} restarts`, run: async () => { this.#cuts.push({ connector: name, at: Date.now() }); await connector.restart() } },
      { name: `xAgent's link to ${name} cut`, run: async () => agent.xagent.terminate() },
      { name: `xAgent silent to ${name}`, run: async () => { agent.silent = true; await after(random.between(500, 4_000)); agent.silent = false } },
    ])
  }

  /** Everything runs and answers; what waits is worked off. */
  async #settle(): Promise<void> {
    const { instances, agents, redis, connectors } = this.world
    for (const agent of agents.values()) Object.assign(agent, { silent: false, moody: false })
    for (const connector of connectors.values()) connector.onTool(() => undefined)
    redis.goOn()
    for (const instance of instances) {
      instance.goOn()
      await instance.start()
    }
    const rest = async (): Promise<boolean> => {
      const pending = await Promise.all(instances.flatMap((one) => ['inbound', 'outbound'].map((direction) => one.metric('pending_messages', { direction }))))
      const owned = (await Promise.all(instances.map((one) => one.owned()))).flat()
      return owned.length === connectors.size && pending.every((n) => n === 0) && [...agents.values()].every((agent) => agent.unanswered === 0)
    }
    const restedFor = async (): Promise<boolean> => (await rest()) && (await after(2_000, true)) && rest()
    await waitUntil(restedFor, SETTLE_MS, 'nothing waits any more').catch((error: unknown) => this.options.say(String(error)))
  }

  async #judge(): Promise<ChaosResult> {
    const { agents, instances } = this.world
    const wrong: string[] = []
    const stored = await this.#stored(wrong)
    const seen = new Map<string, number>()
    for (const agent of agents.values()) for (const [text, count] of agent.taken) seen.set(text, (seen.get(text) ?? 0) + count)
    const counts = { lost: 0, lostByV1: 0, duplicated: 0, doubled: 0, misdirected: 0, notSent: 0, inDoubt: 0 }
    for (const [text, push] of this.#pushes) {
      if (stored.terminal.has(text) || seen.has(text)) continue
      if (!this.#committed.has(text) && (this.#knownLost.has(text) || this.#inWindow(push))) counts.lostByV1 += 1
      else {
        counts.lost += 1
        wrong.push(`lost: ${text}, ${push.outcome} at ${push.at}`)
      }
    }
    for (const [text, count] of seen) if (count > 1) {
      counts.duplicated += 1
      wrong.push(`delivered ${count} times: ${text}`)
    }
    const sent = new Map<string, number>()
    for (const { connector: name, text, to, channelId } of this.#sent) {
      sent.set(text, (sent.get(text) ?? 0) + 1)
      const [, legacyId, sender] = text.replace(/^re:/, '').split(' ')
      if (channelId !== legacyId || (name === 'wechat' && to !== sender)) {
        counts.misdirected += 1
        wrong.push(`misdirected: "${text}" went to ${to} on ${channelId}`)
      }
    }
    for (const [text, count] of sent) if (count > 1) {
      counts.doubled += 1
      wrong.push(`sent ${count} times: ${text}`)
    }
    for (const agent of agents.values()) {
      for (const [key, { status, code }] of agent.endings) {
        if (code === 'delivery_in_doubt') counts.inDoubt += 1
        else if (status === 'rejected' && code !== 'no_reply_target') wrong.push(`a final was refused: ${key} ${code}`)
      }
      if (agent.unanswered > 0) wrong.push(`${agent.unanswered} finals have no terminal ack`)
    }
    counts.notSent = [...seen.keys()].filter((text) => this.#acceptedAnswer(text) && !sent.has(`re:${text}`)).length
    if (counts.notSent > 0) wrong.push(`${counts.notSent} finals were accepted and reached nobody`)
    const imbalance = (await Promise.all(instances.flatMap((one) => ['inbound', 'outbound'].map((direction) => one.metric('ledger_imbalance', { direction }))))).reduce((sum, n) => sum + Math.abs(n), 0)
    if (imbalance > 0) wrong.push(`the ledgers are off by ${imbalance}`)
    if (stored.pending > 0) wrong.push(`${stored.pending} messages are waiting still`)
    return {
      pushed: this.#pushes.size, received: stored.terminal.size + stored.pending, delivered: seen.size, lost: counts.lost, duplicated: counts.duplicated, tool_calls_doubled: counts.doubled,
      misdirected: counts.misdirected, accepted_not_sent: counts.notSent, expired: stored.expired, evicted: stored.evicted, in_doubt: counts.inDoubt, ledger_imbalance: imbalance,
      faults: this.#faultsAt.length, recovery_p99_ms: this.#recovery(), lost_by_v1: counts.lostByV1, wrong,
    }
  }

  #acceptedAnswer(text: string): boolean {
    return this.world.agents.get(text.split(' ')[0] ?? '')?.accepted.has(text) === true
  }

  #inWindow({ connector, at }: Push): boolean {
    return this.#cuts.some((cut) => cut.connector === connector && at > cut.at - WINDOW_MS && at <= cut.at + WINDOW_MS)
  }

  async #noteCommitted(): Promise<void> {
    const store = new RedisStore(this.world.redis.url, { prefix: 'xig:', waitReplicas: 0 })
    const byId = this.#byId()
    try {
      for (const name of this.world.connectors.keys()) {
        for await (const { value } of eachRecord(store, name as RouteName, 'inbound')) {
          const { originalId, messageId } = value as InboundRecord
          const text = byId.get(`${name} ${originalId ?? messageId}`)
          if (text !== undefined) this.#committed.add(text)
        }
      }
    } finally {
      await store.close()
    }
  }

  #byId(): ReadonlyMap<string, string> {
    return new Map([...this.#pushes.keys()].map((text) => [`${text.split(' ')[0]} ${9_000_000 + Number(text.split(' ').at(-1))}`, text]))
  }

  /** What the store says of each push, by its words. */
  async #stored(wrong: string[]): Promise<{ terminal: Map<string, string>; pending: number; expired: number; evicted: number }> {
    const store = new RedisStore(this.world.redis.url, { prefix: 'xig:', waitReplicas: 0 })
    const byId = this.#byId()
    const found = { terminal: new Map<string, string>(), pending: 0, expired: 0, evicted: 0 }
    try {
      for (const name of this.world.connectors.keys()) {
        const route = name as RouteName
        const end = (id: string, outcome: string): void => {
          const text = byId.get(`${name} ${id}`)
          if (text === undefined) return
          const before = found.terminal.get(text)
          if (before !== undefined && before !== outcome) wrong.push(`two ends: ${text} ${before} and ${outcome}`)
          found.terminal.set(text, outcome)
        }
        for await (const { value } of eachRecord(store, route, 'completed')) {
          const { originalId, messageId, outcome } = value as CompletedRecord
          end(originalId ?? messageId, outcome)
          if (outcome === 'expired') found.expired += 1
          if (outcome === 'evicted') found.evicted += 1
        }
        for await (const { value } of eachRecord(store, route, 'dead_letter')) {
          const { direction, reason, message, messageId } = value as DeadLetterRecord
          if (direction === 'inbound') wrong.push(`an inbound dead letter: ${messageId} ${reason} ${message ?? ''}`)
        }
        for await (const { value } of eachRecord(store, route, 'inbound')) found.pending += Number((value as InboundRecord).seq >= 0)
      }
      return found
    } finally {
      await store.close()
    }
  }

  /** From each fault to the next message that was taken, the slowest of a hundred. */
  #recovery(): number {
    const taken = [...this.world.agents.values()].flatMap(({ takenAt }) => takenAt).sort((a, b) => a - b)
    const times = this.#faultsAt.flatMap((at) => {
      const next = taken.find((moment) => moment > at)
      return next === undefined ? [] : [next - at]
    }).sort((a, b) => a - b)
    return times[Math.min(times.length - 1, Math.ceil(times.length * 0.99) - 1)] ?? 0
  }
}

async function waitUntil(holds: () => boolean | Promise<boolean>, ms: number, what: string): Promise<void> {
  for (const end = Date.now() + ms; Date.now() < end; await after(100)) if (await holds()) return
  throw new Error(`not within ${ms} ms: ${what}`)
}
