/** Sign-in from xAgent: relayed to the connector and normalised to 3.0 (DESIGN §3 Sign-in). Inputs are never stored or logged. */
import { readDescriptor } from '../legacy/legacy-descriptor.js'
import type { MainLink } from '../legacy/port.js'
import { wireError, type ErrorCode, type WireError } from '../protocol/errors.js'
import type { ChannelId } from '../protocol/ids.js'
import { nestsAtMost, type JsonObject, type Packet } from '../protocol/packet.js'
import { cancelAck, signInAck } from '../translate/sign-in.js'
import type { ChannelRunner } from './channel-runner.js'
import { putChannel, setDescriptor, type Entry } from './channel-table.js'
import type { RouteContext } from './context.js'
import type { DescriptorBoard } from './descriptor-board.js'
import type { NorthLink } from './north-link.js'
import type { NorthReplies } from './north-replies.js'
import { SignInSessions, type SignInSession } from './sign-in-sessions.js'

const REQUEST_TIMEOUT_MS = 30_000
/** Form inputs are flat; what is deeper is no form. */
const MAX_INPUT_DEPTH = 8
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
    this.#relay(link, packet, entry, { flow_id: flowId ?? '', input: packet.payload['input'] ?? {} }, (payload) => {
      const legacyId = payload['auth_session_id']
      const session = this.#sessions.of(entry, typeof legacyId === 'string' ? legacyId : '', flowId)
      return this.#signIn(entry, packet, session, payload)
    })
  }

  status(link: NorthLink, packet: Packet, entry: Entry): void {
    const session = this.#sessions.find(packet.payload['auth_session_id'], entry)
    if (session === undefined) return this.replies.reply(link, packet, 'auth.status.ack', {}, wireError('auth_session_not_found'))
    const request = { flow_id: session.flowId ?? '', auth_session_id: session.legacyId, ...(packet.payload['refresh'] === true && { refresh: true }) }
    this.#relay(link, packet, entry, request, (payload) => this.#signIn(entry, packet, session, payload), (error) => {
      // The connector forgot a session that we know: it was lost with its socket, and xAgent must start anew.
      return error.code === 'auth_session_not_found' ? this.#signIn(entry, packet, session, { status: 'expired' }) : null
    })
  }

  cancel(link: NorthLink, packet: Packet, entry: Entry): void {
    const session = this.#sessions.find(packet.payload['auth_session_id'], entry)
    if (session === undefined) return this.replies.reply(link, packet, 'auth.cancel.ack', { auth_session_id: '', status: 'not_found' })
    this.#relay(link, packet, entry, { auth_session_id: session.legacyId }, (payload) => cancelAck(payload, session.id))
  }

  logout(link: NorthLink, packet: Packet, entry: Entry): void {
    this.#relay(link, packet, entry, {}, (payload) => {
      this.runner.dispatch(entry, { type: 'rebound' })
      this.takeDescriptor(entry, readDescriptor(payload['connection_descriptor'])?.body ?? null)
      return { status: 'ok', connection_descriptor: this.board.of(entry, packet.channelId as ChannelId) }
    })
  }

  #signIn(entry: Entry, packet: Packet, session: SignInSession, payload: JsonObject): JsonObject {
    const descriptor = readDescriptor(payload['connection_descriptor'])?.body ?? null
    if (descriptor !== null) this.takeDescriptor(entry, descriptor)
    if (payload['status'] === 'authenticated' && !session.done) this.#rebound(entry, session)
    return signInAck(payload, {
      channelId: packet.channelId as ChannelId, sessionId: session.id, flowId: session.flowId,
      descriptor: descriptor === null ? null : this.board.of(entry, packet.channelId as ChannelId),
    })
  }

  /** Once per session: status is asked for again and again. */
  #rebound(entry: Entry, session: SignInSession): void {
    session.done = true
    entry.authTrouble = null
    this.runner.dispatch(entry, { type: 'rebound' })
  }

  /** Takes a Descriptor of the connector over, and shows xAgent what has changed. */
  takeDescriptor(entry: Entry, descriptor: JsonObject | null): void {
    if (descriptor === null || !setDescriptor(entry, descriptor)) return
    this.context.commits.push([putChannel(entry)], null)
    this.board.show(entry)
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
