/** What a simulated connector remembers, and what of that the end of its process takes away. */
import { randomUUID } from 'node:crypto'
import type { JsonObject } from '../protocol/packet.js'
import type { Account, ConnectorKind, SignInStep } from './connector-kind.js'
import type { SimMedia } from './connector-media.js'
import type { ConnectorSocket } from './connector-socket.js'
import { textField } from './wire-packet.js'

export interface SimChannel {
  readonly id: string
  /** Null = nobody is signed in. */
  account: Account | null
  /** The name under which a test signed it in; empty = an account of its own. */
  signedInAs: string
  /** The socket that opened it last; null = closed. */
  opener: ConnectorSocket | null
  /** Pushes that wait for an opener, where the platform queues them. */
  queued: QueuedPush[]
}

export interface QueuedPush {
  readonly payload: JsonObject
  /** Unix ms. */
  readonly queuedAt: number
}

export interface SignInSession {
  readonly id: string
  readonly channelId: string
  readonly steps: readonly SignInStep[]
  readonly expiresAt: number | null
  readonly input: JsonObject
  /** Looks so far. */
  looks: number
  status: string
}

export class ConnectorMemory {
  /** In memory only: the first hello of a process decides it, a later different one replaces it. */
  connectorId: string | null = null
  readonly channels = new Map<string, SimChannel>()
  readonly sessions = new Map<string, SignInSession>()
  /** References of media that pushes have shown. */
  readonly mediaRefs = new Set<string>()
  /** Bytes behind references, where there are any. */
  readonly media = new Map<string, SimMedia>()
  #signIns = 0

  constructor(private readonly kind: ConnectorKind) {}

  /** Decides the `connector_id` of a hello. */
  adoptConnectorId(asked: string): string {
    if (this.connectorId === null) this.connectorId = asked === '' ? this.kind.newConnectorId() : asked
    else if (asked !== '' && asked !== this.connectorId) this.connectorId = this.kind.newConnectorId()
    return this.connectorId
  }

  addChannel(id = this.kind.newChannelId()): SimChannel {
    const channel: SimChannel = { id, account: null, signedInAs: '', opener: null, queued: [] }
    this.channels.set(id, channel)
    return channel
  }

  /** Signs somebody in; `account` in the input names an account, which may be signed in elsewhere. */
  bind(channel: SimChannel, input: JsonObject = {}): void {
    const name = textField(input, 'account')
    const before = name === '' ? undefined : [...this.channels.values()].find((other) => other !== channel && other.account !== null && other.signedInAs === name)
    channel.account = (this.kind.movesAccount ? before?.account : undefined) ?? this.kind.newAccount(this.#signIns++, input)
    channel.signedInAs = name
    if (before !== undefined && this.kind.movesAccount) this.#leave(before)
  }

  /** Nobody is signed in there any more, and no packet says so; a closed channel is gone with that. */
  #leave(channel: SimChannel): void {
    channel.account = null
    channel.signedInAs = ''
    if (channel.opener === null) this.forgetChannel(channel.id)
  }

  /** The socket is gone: its channels are closed, and those where nobody is signed in die with it. */
  socketGone(socket: ConnectorSocket): void {
    for (const channel of this.channels.values()) {
      if (channel.opener !== socket) continue
      channel.opener = null
      if (channel.account === null && !this.#finishesAlone(channel)) this.forgetChannel(channel.id)
    }
  }

  forgetChannel(id: string): void {
    this.channels.delete(id)
    this.endSessionsOf(id)
  }

  endSessionsOf(channelId: string): void {
    for (const session of this.sessions.values()) if (session.channelId === channelId) this.sessions.delete(session.id)
  }

  /** What a stop of the process leaves: bindings and queues are on disk, the rest was in memory. */
  processEnded(): void {
    this.connectorId = null
    this.sessions.clear()
    for (const channel of [...this.channels.values()]) {
      channel.opener = null
      if (channel.account === null) this.channels.delete(channel.id)
    }
  }

  /** A connector that starts from nothing and has already given itself another id. */
  forgetEverything(): void {
    this.channels.clear()
    this.sessions.clear()
    this.mediaRefs.clear()
    this.media.clear()
    this.connectorId = `fresh-${randomUUID()}`
  }

  #finishesAlone(channel: SimChannel): boolean {
    if (!this.kind.signIn.outlivesSocket) return false
    const session = [...this.sessions.values()].find(({ channelId }) => channelId === channel.id)
    if (session?.steps.at(-1) !== 'authenticated') return false
    this.bind(channel, session.input)
    return true
  }
}
