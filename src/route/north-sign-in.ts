/** Sign-in from xAgent: relayed to the connector and normalised to 3.0 (DESIGN §3 Sign-in). Inputs are never stored or logged. */
import { readDescriptor } from '../legacy/legacy-descriptor.js'
import type { MainLink } from '../legacy/port.js'
import { wireError, type ErrorCode, type WireError } from '../protocol/errors.js'
import type { ChannelId } from '../protocol/ids.js'
import { nestsAtMost, type JsonObject, type Packet } from '../protocol/packet.js'
import { cancelAck, signInAck } from '../translate/sign-in.js'
import type { ChannelRunner } from './channel-runner.js'
import { isSignedOut, statusOf } from '../translate/descriptor.js'
import type { BindingCheck } from './binding-check.js'
import type { Entry } from './channel-table.js'
import type { RouteContext } from './context.js'
import type { DescriptorBoard } from './descriptor-board.js'
import type { NorthLink } from './north-link.js'
import type { NorthReplies } from './north-replies.js'
import { SignInSessions, type SignInSession } from './sign-in-sessions.js'

const REQUEST_TIMEOUT_MS = 30_000
/** Form inputs are flat; what is deeper is no form. */
const MAX_INPUT_DEPTH = 8
/** What xAgent hears of its sign-in while the connector is being dialled again: it goes on, or will be over then. */
const WAITING: JsonObject = { status: 'pending', poll_interval_millis: 1_000, message: 'the connector is being reached again' }
/** Codes of connectors that mean the same on our side; any other becomes the general one (stable codes, PROTOCOL). */
const RELAYED_CODES: ReadonlyMap<string, ErrorCode> = new Map([
  ['auth_start_failed', 'auth_start_failed'], ['auth_session_not_found', 'auth_session_not_found'],
  ['connection_not_found', 'connection_not_found'], ['connection_not_authenticated', 'connection_not_authenticated'],
])

export class NorthSignIn {
  readonly #sessions: SignInSessions

  constructor(
    private readonly context: RouteContext,
    private readonly main: MainLink,
    private readonly board: DescriptorBoard,
    private readonly bindings: BindingCheck,
    private readonly replies: NorthReplies,
    private readonly runner: ChannelRunner,
  ) {
    this.#sessions = new SignInSessions((prefix) => context.newId(prefix))
  }

  start(link: NorthLink, packet: Packet, entry: Entry): void {
    const flowId = typeof packet.payload['flow_id'] === 'string' ? packet.payload['flow_id'] : null
    if (!nestsAtMost(packet.payload['input'], MAX_INPUT_DEPTH)) {
      return this.replies.reply(link, packet, 'auth.start.ack', {}, wireError('invalid_packet', `input must nest at most ${MAX_INPUT_DEPTH} deep`))
    }
    this.#loggedOut(entry, (replaces) => {
      this.#relay(link, packet, entry, { flow_id: flowId ?? '', input: packet.payload['input'] ?? {} }, (payload) => {
        const legacyId = payload['auth_session_id']
        const session = this.#sessions.of(entry, typeof legacyId === 'string' ? legacyId : '', flowId, replaces)
        return this.#signIn(entry, packet, session, payload)
      })
    })
  }

  /**
   * A binding that is replaced is logged out first: an abandoned one would go on taking messages (docs/legacy.md). `then` gets
   * whether the earlier account may have the channel still. Everything else that is written from now on is the new account's.
   */
  #loggedOut(entry: Entry, then: (replaces: boolean) => void): void {
    if (nobodySignedIn(entry)) return then(false)
    if (statusOf(entry.descriptor) !== 'connected' || !this.main.up) return then(true)
    this.main.request('auth.logout', entry.legacyId, {}, REQUEST_TIMEOUT_MS, (answer) => {
      if (answer.ok && answer.value.error === undefined) {
        this.#tookLeave(entry, answer.value.payload)
        return then(false)
      }
      this.context.log.warn({ channelId: entry.id }, 'the earlier account of a channel could not be logged out before a new sign-in')
      then(true)
    })
  }

  /** A logout has gone through, whether or not its answer shows so. */
  #tookLeave(entry: Entry, payload: JsonObject): void {
    const left = this.board.take(entry, readDescriptor(payload['connection_descriptor'])?.body ?? null)
    if (!left) this.runner.dispatch(entry, { type: 'rebound' })
  }

  status(link: NorthLink, packet: Packet, entry: Entry): void {
    const session = this.#sessions.find(packet.payload['auth_session_id'], entry)
    if (session === undefined) return this.replies.reply(link, packet, 'auth.status.ack', {}, wireError('auth_session_not_found'))
    if (!this.main.up) return this.replies.reply(link, packet, 'auth.status.ack', this.#signIn(entry, packet, session, session.done ? { status: 'authenticated' } : WAITING))
    const request = { flow_id: session.flowId ?? '', auth_session_id: session.legacyId, ...(packet.payload['refresh'] === true && { refresh: true }) }
    this.#relay(link, packet, entry, request, (payload) => this.#signIn(entry, packet, session, payload), (error) => {
      // The connector forgot a session that we know: it was lost with its socket, and either went through before or must start anew.
      if (error.code !== 'auth_session_not_found') return null
      const status = statusOf(entry.descriptor) === 'connected' ? 'authenticated' : 'expired'
      return this.#signIn(entry, packet, session, { status })
    })
  }

  cancel(link: NorthLink, packet: Packet, entry: Entry): void {
    const session = this.#sessions.find(packet.payload['auth_session_id'], entry)
    if (session === undefined) return this.replies.reply(link, packet, 'auth.cancel.ack', { auth_session_id: '', status: 'not_found' })
    this.#relay(link, packet, entry, { auth_session_id: session.legacyId }, (payload) => cancelAck(payload, session.id))
  }

  logout(link: NorthLink, packet: Packet, entry: Entry): void {
    this.#relay(link, packet, entry, {}, (payload) => {
      this.#tookLeave(entry, payload)
      return { status: 'ok', connection_descriptor: this.board.of(entry, packet.channelId as ChannelId) }
    })
  }

  #signIn(entry: Entry, packet: Packet, session: SignInSession, payload: JsonObject): JsonObject {
    const descriptor = readDescriptor(payload['connection_descriptor'])?.body ?? null
    if (descriptor !== null) this.board.take(entry, descriptor)
    const authenticated = payload['status'] === 'authenticated'
    if (authenticated && !session.done) this.#signedIn(entry, session, descriptor !== null)
    return signInAck(payload, {
      channelId: packet.channelId as ChannelId, sessionId: session.id, flowId: session.flowId,
      descriptor: descriptor === null && statusOf(entry.descriptor) !== 'connected' ? null : this.board.of(entry, packet.channelId as ChannelId),
    })
  }

  /**
   * Once per session: status is asked for again and again. The account may have left another channel for this one. Where an
   * earlier one could not be logged out, this is the first moment at which it is known to be gone.
   */
  #signedIn(entry: Entry, session: SignInSession, described: boolean): void {
    session.done = true
    entry.authTrouble = null
    if (session.replaces) this.runner.dispatch(entry, { type: 'rebound' })
    if (!described && this.main.up) this.bindings.ask(entry)
    this.bindings.askAll(entry)
  }

  /** Relays a request on the main link and answers with what `project` makes of the answer; connector texts stay here. */
  #relay(
    link: NorthLink, packet: Packet, entry: Entry, payload: JsonObject, project: (payload: JsonObject) => JsonObject,
    recover: (error: WireError) => JsonObject | null = () => null,
  ): void {
    const ack = `${packet.type}.ack`
    if (!this.main.up) return this.replies.reply(link, packet, ack, {}, wireError('connector_channel_unavailable'))
    this.main.request(packet.type, entry.legacyId, payload, REQUEST_TIMEOUT_MS, (answer) => {
      if (!answer.ok) return this.replies.reply(link, packet, ack, {}, wireError('connector_channel_unavailable'))
      const { error } = answer.value
      if (error === undefined) return this.replies.reply(link, packet, ack, project(answer.value.payload))
      const recovered = recover(error)
      if (recovered !== null) return this.replies.reply(link, packet, ack, recovered)
      this.context.log.warn({ type: packet.type, code: error.code.slice(0, 64), channelId: entry.id }, 'the connector refused a request')
      this.replies.reply(link, packet, ack, {}, wireError(RELAYED_CODES.get(error.code) ?? 'tool_invoke_failed', 'the connector refused the request'))
    })
  }
}

const nobodySignedIn = ({ descriptor }: Entry): boolean => descriptor === null || isSignedOut(descriptor) || statusOf(descriptor) === 'authenticating'
