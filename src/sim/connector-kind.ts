/** What differs between the simulated connectors: a kind is data plus the few things its platform does in its own way. */
import type { JsonObject } from '../protocol/packet.js'

export type KindName = 'telegram' | 'wechat' | 'feishu' | 'generic'

/** Who is signed in on a channel. */
export interface Account {
  readonly displayName: string
  readonly accountHint: string
  /** Whom a plain send reaches; null while there is nobody. Feishu moves it to whoever wrote last. */
  recipient: string | null
  /** The platform's next message number. */
  nextNumber: number
  /** Opaque reply references that were handed out, and the chat each stands for. */
  readonly replyRefs: Map<string, string>
}

/** A message that a person writes on the platform. */
export interface UserMessage {
  readonly text: string
  readonly messageId?: string
  readonly senderId?: string
  readonly senderName?: string
  readonly chatId?: string
  /** Written in a group; a string names it. */
  readonly group?: boolean | string
  readonly files?: readonly UserFile[]
  /** When the platform took it, Unix ms; 0 = the platform does not say. */
  readonly createTimeMs?: number
  /** What WeChat pushes like a user's message though it is none: the bot's own, one still being written, one taken back. */
  readonly state?: 'own' | 'unfinished' | 'recalled'
  /** Payload fields set as they are, over what the kind makes; `undefined` removes one. */
  readonly fields?: Readonly<Record<string, unknown>>
}

export interface UserFile {
  readonly type: 'image' | 'video' | 'file'
  readonly filename?: string
  readonly mimeType?: string
  readonly byteSize?: number
  /** What a download gives; without, the reference leads nowhere. */
  readonly bytes?: Buffer
  /** What a download says it is; the real ones are often wrong. */
  readonly contentType?: string
}

/** How a sign-in shows itself at one look: a status, or an error in the ack. */
export type SignInStep =
  'pending' | 'scanned' | 'authenticated' | 'expired' | 'qr_refresh_required' | 'failed' | { readonly error: string }

export interface SignInKind {
  readonly flowId: string
  /** A form is finished by its `auth.start`; a QR code is looked at by `auth.status`, one step a look. */
  readonly form: boolean
  readonly steps: readonly SignInStep[]
  /** How long a session lives, ms; null = not said. */
  readonly lifetimeMs: number | null
  readonly startPollMs: number | null
  readonly statusPollMs: number
  readonly qrCodeText: string | null
  /** Bytes of randomness in a session id. */
  readonly sessionIdBytes: number
  readonly namesChannel: boolean
  readonly pushesDescriptor: boolean
  /** Goes on without its socket: the old channel id opens as connected later. */
  readonly outlivesSocket: boolean
  /** `auth.status` answers from the binding, whatever session is asked for. */
  readonly statusFromBinding: boolean
}

export interface ToolKind {
  /** Arguments without which nothing is tried, with the error text each. */
  readonly needs: ReadonlyMap<string, string>
  /** Whom this call reaches; a string with `error` says why it cannot. */
  readonly recipient: (account: Account, args: JsonObject) => string | { readonly error: string }
  readonly result: (account: Account, args: JsonObject, recipient: string, now: number) => JsonObject
}

export interface ConnectorKind {
  readonly name: KindName
  /** In the 1.0 dialect, as recorded. */
  readonly card: JsonObject
  readonly skill: string
  readonly newChannelId: () => string
  readonly newConnectorId: () => string
  /** `target` of a Descriptor, without the account. */
  readonly target: { readonly provider: string; readonly label: string }
  /** What the platform does with messages while no socket has the channel. */
  readonly whileClosed: 'lost' | 'queued'
  /** How a tool call on a channel that nobody has open is refused: as an ack, or as a packet of `type:"error"`. */
  readonly notOpenShape: 'ack' | 'error'
  readonly notAuthenticated: string
  readonly unknownTool: (toolId: string) => string
  /** A lost token: WeChat's binding is gone, the others go on saying `connected`. */
  readonly forgetsLostToken: boolean
  /** An account is on one channel only: signed in on a second one it leaves the first, which says nothing. */
  readonly movesAccount: boolean
  readonly signIn: SignInKind
  readonly tools: ReadonlyMap<string, ToolKind>
  /** The account that the `serial`th sign-in of this process binds; a form may name the chat. */
  readonly newAccount: (serial: number, input: JsonObject) => Account
  /** A `message.push` payload in the 1.0 dialect; `media` are ready items. Counts, and moves the recipient, as the platform does. */
  readonly push: (account: Account, message: UserMessage, media: readonly JsonObject[], now: number) => JsonObject
  readonly mediaItem: (file: UserFile, ref: string, expiresAt: number) => JsonObject
  readonly mediaRefPrefix: string
}

export interface WrappedMessage {
  readonly from: string
  readonly platform: string
  readonly words: string
  readonly files: number
  readonly tool: string
  readonly replyRef?: string
}

/** The text that the three connectors wrap around a person's words, three times in each push. */
export function wrapped(message: WrappedMessage): JsonObject {
  const { from, platform, words, files, tool, replyRef } = message
  const kind = files === 0 ? 'text' : words === '' ? 'file' : 'text and file'
  const argument = replyRef === undefined ? '' : `, argument reply_ref must be ${replyRef}`
  const text = `Message from ${from} on ${platform}.\nKind: ${kind}\nWords: ${words === '' ? '(none)' : words}\n\n` +
    `Answer with the tool ${tool}${argument}; load im-connector-reply before sending a file.`
  return { text, content: text, activation_message: text }
}

/** The Skill of a v1 connector in the structure of the real ones; everything it asks for is wrong under `xagent.im.v2`. */
export function v1Skill(platform: string, tool: string): string {
  return [
    '---', 'name: im-connector-reply', `description: How to answer on ${platform}.`, '---', '',
    `A message from ${platform} is not answered by ending the turn: always call \`${tool}\`.`,
    'For a file, upload it with the system key to `POST /media/uploads`, then send the returned `media_ref`.',
    'Send text and files in separate calls.', '',
  ].join('\n')
}
