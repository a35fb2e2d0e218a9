/**
 * A simulated v1 connector: an HTTP and WebSocket server that behaves as the real ones were seen to behave (docs/legacy.md),
 * their bad habits included. Used by the demo, and as the double of a connector in the tests.
 */
import type { WebSocket } from 'ws'
import type { JsonObject } from '../protocol/packet.js'
import { Answers } from './connector-answers.js'
import { cardOf, descriptorOf, healthOf, type Dialect } from './connector-dialect.js'
import type { ConnectorEvents, LostPush, Sent, ToolCall } from './connector-events.js'
import { ConnectorHttp } from './connector-http.js'
import type { ConnectorKind, KindName, SignInStep, UserMessage } from './connector-kind.js'
import { ConnectorMedia } from './connector-media.js'
import { ConnectorMemory, type SimChannel } from './connector-memory.js'
import { ConnectorPackets } from './connector-packets.js'
import { ConnectorPushes, type Pushed } from './connector-pushes.js'
import { ConnectorSignIn } from './connector-sign-in.js'
import { ConnectorSocket } from './connector-socket.js'
import { ConnectorTools, type ToolScript } from './connector-tools.js'
import { KINDS } from './kinds/index.js'
import { Occurrences } from './occurrences.js'
import { wirePacket } from './wire-packet.js'

export interface SimConnectorOptions {
  readonly kind: KindName
  readonly dialect?: Dialect
  readonly host?: string
  /** 0 = any free port. */
  readonly port?: number
  /** Null = no key is asked for. */
  readonly apiKey?: string | null
  /** Path prefix of the Base URL, such as `/telegram`. */
  readonly prefix?: string
  /** Wall clock, Unix ms. */
  readonly now?: () => number
}

export interface ChannelView {
  readonly channelId: string
  readonly signedIn: boolean
  readonly open: boolean
  /** Number of the socket that opened it last. */
  readonly socket: number | null
  /** Pushes that the platform keeps for it. */
  readonly queued: number
}

/** Starts a connector and resolves when its port is open. */
export async function startSimConnector(options: SimConnectorOptions): Promise<SimConnector> {
  const connector = new SimConnector(options)
  await connector.start()
  return connector
}

export class SimConnector {
  readonly events = new Occurrences<ConnectorEvents>()
  readonly kind: ConnectorKind
  readonly dialect: Dialect
  /** Its files: what can be scripted stands there. */
  readonly media: ConnectorMedia
  readonly #now: () => number
  readonly #memory: ConnectorMemory
  readonly #http: ConnectorHttp
  readonly #tools: ConnectorTools
  readonly #signIn: ConnectorSignIn
  readonly #pushes: ConnectorPushes
  readonly #packets: ConnectorPackets
  readonly #sockets = new Map<number, ConnectorSocket>()
  #socketCount = 0

  constructor(options: SimConnectorOptions) {
    const { kind, dialect = '1.0', host = '127.0.0.1', port = 0, apiKey = null, prefix = '', now = Date.now } = options
    this.kind = KINDS[kind]
    this.dialect = dialect
    this.#now = now
    this.#memory = new ConnectorMemory(this.kind)
    this.media = new ConnectorMedia(this.kind, dialect, this.#memory, this.events, now)
    const answers = new Answers(now)
    const descriptor = (channel: SimChannel) => descriptorOf(this.kind, dialect, channel, this.#memory.connectorId ?? '')
    this.#tools = new ConnectorTools(this.kind, this.#memory, answers, this.events, now)
    this.#signIn = new ConnectorSignIn(this.kind, this.#memory, answers, {
      descriptor, now, pushDescriptor: (channel) => this.#pushDescriptor(channel, descriptor(channel)),
    })
    this.#pushes = new ConnectorPushes(this.kind, dialect, this.#memory, this.events, now)
    this.#packets = new ConnectorPackets({
      kind: this.kind, dialect, memory: this.#memory, answers, events: this.events,
      tools: this.#tools, signIn: this.#signIn, pushes: this.#pushes, descriptor, now,
    })
    this.#http = new ConnectorHttp({
      host, port, prefix, apiKey, events: this.events,
      card: () => cardOf(this.kind, dialect), skill: () => this.kind.skill, health: () => healthOf(this.kind, dialect),
      onSocket: (ws) => this.#accept(ws),
      media: (path, request, response, authorized) => this.media.handle(path, request, response, authorized),
    })
  }

  /** The Base URL. */
  get url(): string {
    return this.#http.url
  }

  get running(): boolean {
    return this.#http.listening
  }

  async start(): Promise<void> {
    await this.#http.start()
    this.#pushes.running = true
  }

  /** The process ends: the port closes, every socket dies without a close frame, what was in memory is gone. */
  async stop(): Promise<void> {
    this.#pushes.stop()
    for (const socket of this.#sockets.values()) socket.kill()
    this.#sockets.clear()
    this.#memory.processEnded()
    await this.#http.stop()
  }

  /** Stops and starts on the same port; with `newIds` it has forgotten every id and binding. */
  async restart({ newIds = false }: { newIds?: boolean } = {}): Promise<void> {
    await this.stop()
    if (newIds) this.#memory.forgetEverything()
    await this.start()
  }

  /**
   * Signs an account in without a flow; an unknown channel comes into being, as if it had been signed in long ago. `account`
   * in the input names the account: WeChat's moves from the channel where it was signed in before.
   */
  signIn(channelId: string, input: JsonObject = {}): void {
    this.#memory.bind(this.#memory.channels.get(channelId) ?? this.#memory.addChannel(channelId), input)
  }

  /** The steps that sign-ins show from now on, and the name of the account that signs in, as for `signIn`. */
  scriptSignIn(steps: readonly SignInStep[], account = ''): void {
    this.#signIn.steps = steps
    this.#signIn.account = account
  }

  /** The platform revokes the token. Only WeChat notices, and tells only the socket that has the channel. */
  loseToken(channelId: string): void {
    const channel = this.#memory.channels.get(channelId)
    if (channel === undefined || !this.kind.forgetsLostToken) return
    channel.account = null
    if (channel.opener === null) return this.#memory.forgetChannel(channelId)
    this.#pushDescriptor(channel, descriptorOf(this.kind, this.dialect, channel, this.#memory.connectorId ?? ''))
  }

  /** A person writes on a signed-in channel. Answers the payload and what became of it. */
  push(channelId: string, message: UserMessage): Pushed {
    return this.#pushes.push(channelId, message)
  }

  /** Any payload as a `message.push`, on the same way as `push`. */
  pushRaw(channelId: string, payload: JsonObject): Pushed {
    return this.#pushes.pushRaw(channelId, payload)
  }

  /** A raw frame on the socket that opened a channel last, or else on the first one after hello. False = there is none. */
  pushBytes(text: string): boolean {
    return this.#mainSocket()?.sendText(text) ?? false
  }

  /** Scripts every tool call from now on; without a script all are sent. */
  onTool(script: ToolScript): void {
    this.#tools.script = script
  }

  /** Called between the opening of a channel and its ack, which waits for it. */
  onOpen(before: (channelId: string) => void | Promise<void>): void {
    this.#packets.beforeOpenAck = before
  }

  /** Cuts sockets without a close frame: all, or one. The process goes on. */
  dropSockets(socket?: number): void {
    for (const [id, open] of this.#sockets) if (socket === undefined || socket === id) open.terminate()
  }

  channels(): readonly ChannelView[] {
    return [...this.#memory.channels.values()].map(({ id, account, opener, queued }) => ({
      channelId: id, signedIn: account !== null, open: opener?.open === true, socket: opener?.id ?? null, queued: queued.length,
    }))
  }

  /** Sockets that are open, and which of them have an accepted hello. */
  get connections(): readonly { readonly socket: number; readonly hello: boolean }[] {
    return [...this.#sockets.values()].map(({ id, hello }) => ({ socket: id, hello }))
  }

  get connectorId(): string | null {
    return this.#memory.connectorId
  }

  /** Every tool call whose turn has come, in order. */
  get toolCalls(): readonly ToolCall[] {
    return this.events.all('tool')
  }

  /** What has reached the platform. */
  get sent(): readonly Sent[] {
    return this.events.all('sent')
  }

  /** Pushes that reached nobody, as far as the connector can know. */
  get lost(): readonly LostPush[] {
    return this.events.all('lost')
  }

  /** As `Occurrences.waitFor`: the first that was or will be. */
  waitFor<Kind extends keyof ConnectorEvents>(
    kind: Kind, predicate?: (what: ConnectorEvents[Kind]) => boolean, timeoutMs?: number,
  ): Promise<ConnectorEvents[Kind]> {
    return this.events.waitFor(kind, predicate, timeoutMs)
  }

  #accept(ws: WebSocket): void {
    const id = (this.#socketCount += 1)
    const socket = new ConnectorSocket(id, ws, {
      onText: (from, text) => this.#packets.handle(from, text),
      onClosed: () => {
        this.#sockets.delete(id)
        this.events.record('disconnect', { socket: id })
      },
      onGone: (gone) => this.#memory.socketGone(gone),
    })
    this.#sockets.set(id, socket)
    this.events.record('socket', { socket: id })
  }

  #mainSocket(): ConnectorSocket | undefined {
    const openers = [...this.#memory.channels.values()].map(({ opener }) => opener).filter((opener) => opener?.open === true)
    const latest = openers.reduce((a, b) => ((b?.id ?? 0) > (a?.id ?? 0) ? b : a), null)
    return latest ?? [...this.#sockets.values()].find(({ hello }) => hello)
  }

  #pushDescriptor(channel: SimChannel, descriptor: JsonObject): void {
    const payload = { connection_descriptor: descriptor }
    channel.opener?.send(wirePacket({ connector_channel_id: channel.id, type: 'connection.descriptor.push', payload }, this.#now()))
  }
}
