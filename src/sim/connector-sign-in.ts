/** Sign-in at a simulated connector, as the recordings show it: a form in one step, or a QR code that is looked at. */
import type { JsonObject } from '../protocol/packet.js'
import type { Answers } from './connector-answers.js'
import type { ConnectorKind, SignInStep } from './connector-kind.js'
import type { ConnectorMemory, SignInSession, SimChannel } from './connector-memory.js'
import type { ConnectorSocket } from './connector-socket.js'
import { objectField, textField, wireId, type WirePacket } from './wire-packet.js'

const QR_IMAGE = 'data:image/png;base64,iVBORw0KGgo='

export interface SignInOutlets {
  readonly descriptor: (channel: SimChannel) => JsonObject
  readonly pushDescriptor: (channel: SimChannel) => void
  readonly now: () => number
}

export class ConnectorSignIn {
  /** The steps of sign-ins that start from now on, one for each look; the last one stays. */
  steps: readonly SignInStep[]
  /** The account that scans QR codes from now on; empty = a new one each time. */
  account = ''

  constructor(
    private readonly kind: ConnectorKind,
    private readonly memory: ConnectorMemory,
    private readonly answers: Answers,
    private readonly outlets: SignInOutlets,
  ) {
    this.steps = kind.signIn.steps
  }

  start(socket: ConnectorSocket, request: WirePacket, channel: SimChannel): void {
    const { signIn } = this.kind
    if (textField(request.payload, 'flow_id') !== signIn.flowId) {
      return this.answers.ackError(socket, request, { code: 'auth_start_failed', message: 'unknown_flow' })
    }
    // A second start ends the first session.
    this.memory.endSessionsOf(channel.id)
    const session: SignInSession = {
      id: wireId('auth_', signIn.sessionIdBytes),
      channelId: channel.id,
      steps: this.steps,
      expiresAt: signIn.lifetimeMs === null ? null : this.outlets.now() + signIn.lifetimeMs,
      input: { ...objectField(request.payload, 'input'), ...(this.account !== '' && { account: this.account }) },
      looks: 0,
      status: 'pending',
    }
    this.memory.sessions.set(session.id, session)
    if (signIn.form) return this.#look(socket, request, channel, session)
    // The QR code is not there yet: it comes with the first look.
    this.answers.ack(socket, request, this.#payload(channel, session, signIn.startPollMs))
  }

  status(socket: ConnectorSocket, request: WirePacket, channel: SimChannel): void {
    const id = textField(request.payload, 'auth_session_id')
    if (this.kind.signIn.statusFromBinding) return this.#statusFromBinding(socket, request, channel, id)
    const session = this.memory.sessions.get(id)
    if (session === undefined || session.channelId !== channel.id) {
      return this.answers.ackError(socket, request, { code: 'auth_session_not_found', message: 'auth session not found' })
    }
    this.#look(socket, request, channel, session)
  }

  cancel(socket: ConnectorSocket, request: WirePacket): void {
    const session = this.memory.sessions.get(textField(request.payload, 'auth_session_id'))
    if (session === undefined) return this.answers.ack(socket, request, { status: 'not_found' })
    if (session.status === 'authenticated') return this.answers.ack(socket, request, { status: 'ignored', auth_status: session.status })
    this.memory.sessions.delete(session.id)
    this.answers.ack(socket, request, { status: 'canceled', auth_status: session.status })
  }

  #look(socket: ConnectorSocket, request: WirePacket, channel: SimChannel, session: SignInSession): void {
    const { signIn } = this.kind
    const step = session.steps[Math.min(session.looks, session.steps.length - 1)] ?? 'pending'
    session.looks += 1
    if (typeof step === 'object') {
      const code = request.type === 'auth.start' ? 'auth_start_failed' : 'auth_status_failed'
      return this.answers.ackError(socket, request, { code, message: step.error })
    }
    const first = step === 'authenticated' && session.status !== 'authenticated'
    session.status = step
    if (first) {
      this.memory.bind(channel, session.input)
      if (signIn.pushesDescriptor) this.outlets.pushDescriptor(channel)
    }
    const pollMs = request.type === 'auth.start' ? signIn.startPollMs : signIn.statusPollMs
    this.answers.ack(socket, request, this.#payload(channel, session, pollMs, {
      ...(signIn.qrCodeText !== null && { qr_code_image: QR_IMAGE, qr_code_text: signIn.qrCodeText }),
      ...(step === 'authenticated' && { connection_descriptor: this.outlets.descriptor(channel) }),
    }))
  }

  #statusFromBinding(socket: ConnectorSocket, request: WirePacket, channel: SimChannel, id: string): void {
    const status = channel.account === null ? 'unauthenticated' : 'authenticated'
    this.answers.ack(socket, request, {
      auth_session_id: id,
      connection_descriptor: this.outlets.descriptor(channel),
      connector_channel_id: channel.id,
      flow_id: this.kind.signIn.flowId,
      message: `Sign-in is ${status}.`,
      poll_interval_millis: this.kind.signIn.statusPollMs,
      status,
    })
  }

  #payload(channel: SimChannel, session: SignInSession, pollMs: number | null, rest: JsonObject = {}): JsonObject {
    const { signIn } = this.kind
    return {
      auth_session_id: session.id,
      ...(signIn.namesChannel && { connector_channel_id: channel.id }),
      ...(session.expiresAt !== null && { expires_at: session.expiresAt }),
      flow_id: signIn.flowId,
      message: `Sign-in is ${session.status}.`,
      ...(pollMs !== null && { poll_interval_millis: pollMs }),
      status: session.status,
      ...rest,
    }
  }
}
