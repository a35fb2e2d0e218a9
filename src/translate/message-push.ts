/** `message.push` (v1 §5) → what becomes a `chat.message` (v2 §5): a total pure function (DESIGN §4). */
import type { MessageBody, FileItem, ReplyAddress } from '../core/record.js'
import { FORBIDDEN_FIELDS } from '../protocol/im-v2.js'
import { MESSAGE_RECEIVED, fieldText, readPush, type Push, type PushFile } from '../protocol/im-v1.js'
import { isId, type JsonObject } from '../protocol/packet.js'
import type { ConversationKey, MessageId } from '../protocol/ids.js'
import { contradicts, conversationOf, digest, firstField, isAccepted, isGroup } from './conversation.js'
import { replyTarget, type CardTools } from './reply-target.js'
import type { Preset } from './preset.js'

/** The configuration of one connector as far as translation needs it. */
export interface InboundRules {
  readonly accept: 'all' | 'private' | readonly string[]
  readonly commands: 'all' | 'private' | 'none'
  readonly senderLine: 'off' | 'groups'
}

export interface TranslationContext {
  readonly preset: Preset
  readonly rules: InboundRules
  /** Tools of the connector's Card, for reply rules that take the tool from the push. */
  readonly tools: CardTools
  /** Whether files are carried; without, words go on alone. */
  readonly files: boolean
  /** Takeover, gateway clock, Unix ms. */
  readonly now: number
  /** Used when a push has nothing that identifies it. */
  readonly freshId: () => string
}

export type NotForwardedReason = 'event_kind' | 'not_user_message' | 'not_accepted' | 'command'

export interface Identity {
  readonly messageId: MessageId
  /** The connector's own id, when it is not the same. */
  readonly originalId: string | null
}

interface Translated extends Identity {
  readonly conversation: ConversationKey | null
  /** Not from a group, as far as the push tells. */
  readonly privateChat: boolean
  /** Fields left out that must never cross, by name, and wire shapes that deviate: all counted. */
  readonly deviations: readonly string[]
}

export type TranslatedPush =
  | (Translated & { readonly kind: 'not_forwarded'; readonly reason: NotForwardedReason })
  | (Translated & { readonly kind: 'empty' | 'files_only'; readonly body: MessageBody })
  | (Translated & {
      readonly kind: 'message'
      readonly body: MessageBody
      readonly createdAt: number
      readonly contentHash: string
      readonly target: ReplyAddress | null
    })

/** Target times before this are clocks that were never set (2001-01-01). */
const EARLIEST_TIME = Date.UTC(2001, 0, 1)
const LATEST_AHEAD_MS = 5 * 60_000
const MAX_NAME = 100
/** A placeholder ends with its number, or where no letter follows; words that touch it stay, and a longer word is none. */
const REST_OF_PLACEHOLDER = /^(?:\d+|(?![a-z_]))/i

/**
 * Translates one push. Never throws; every payload ends in one of four kinds. Identity, words, time and target come from
 * the preset's data; nothing but v2 fields is in the result that crosses.
 */
export function translatePush(payload: JsonObject, context: TranslationContext): TranslatedPush {
  const { preset, rules, now } = context
  const push = readPush(payload)
  const words = wordsOf(push, preset)
  const { missing, ...identity } = identify(push, words, context)
  const common: Translated = {
    ...identity,
    conversation: conversationOf(payload, preset),
    privateChat: !isGroup(payload, preset),
    deviations: [...push.deviations, ...forbiddenFields(payload), ...(missing ? ['identity_missing'] : []), ...(words.isWellFormed() ? [] : ['lone_surrogate'])],
  }
  const reason = notForwarded(push, words, preset, rules)
  if (reason !== null) return { ...common, kind: 'not_forwarded', reason }
  const files = push.files.map((file) => fileItem(file, payload))
  const wordless = words.trim() === ''
  if (wordless && (files.length === 0 || !context.files)) {
    const body: MessageBody = { text: '', files }
    return { ...common, kind: files.length > 0 ? 'files_only' : 'empty', body }
  }
  return {
    ...common,
    kind: 'message',
    body: { text: wordless ? '' : withSender(words, push, preset, rules), files: context.files ? files : [] },
    createdAt: createdAt(payload, preset, now),
    contentHash: contentHash(push),
    target: replyTarget(payload, preset, context.tools, common.conversation, now),
  }
}

/**
 * The user's words, without any prefix: `raw_text` when its key is present, else `text` unless the preset calls that the
 * connector's own wrapper. Placeholders for mentions are cut from the front.
 */
function wordsOf(push: Push, preset: Preset): string {
  let words = push.rawText ?? (preset.wrapperText ? '' : push.text ?? '')
  for (let stripped = true; stripped; ) {
    stripped = false
    const candidate = words.trimStart()
    const prefix = preset.stripLeading.find((one) => candidate.startsWith(one) && REST_OF_PLACEHOLDER.test(candidate.slice(one.length)))
    if (prefix !== undefined) {
      words = candidate.slice(prefix.length).replace(REST_OF_PLACEHOLDER, '').trimStart()
      stripped = true
    }
  }
  return words
}

function notForwarded(push: Push, words: string, preset: Preset, rules: InboundRules): NotForwardedReason | null {
  if (push.eventKind !== MESSAGE_RECEIVED) return 'event_kind'
  if (contradicts(preset.userMessageWhen, push.payload)) return 'not_user_message'
  if (!isAccepted(push.payload, preset, rules.accept)) return 'not_accepted'
  if (isCommand(words) && !mayCommand(push.payload, preset, rules)) return 'command'
  return null
}

/** What xAgent reads as a command or an approval (docs/security: anybody in a group could act as the account's owner). */
function isCommand(words: string): boolean {
  // Whoever reads it may look past what cannot be seen: marks of direction, joiners, blanks of any kind.
  const start = words.replace(/^[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\s]+/u, '')
  return start.startsWith('/') || start.startsWith('@{')
}

function mayCommand(payload: JsonObject, preset: Preset, rules: InboundRules): boolean {
  if (rules.commands === 'all') return true
  return rules.commands === 'private' && !isGroup(payload, preset)
}

/** v2 has no field for the sender: the name goes after the words, in groups, never behind a command. */
function withSender(words: string, push: Push, preset: Preset, rules: InboundRules): string {
  const clean = words.toWellFormed()
  if (rules.senderLine === 'off' || isCommand(words) || !isGroup(push.payload, preset)) return clean
  const name = senderName(push.payload, preset)
  return name === null ? clean : `${clean}\n\n(${name})`
}

/** A name that people gave; where a connector repeats its own id there, a short tag of it: the id itself never crosses. */
function senderName(payload: JsonObject, preset: Preset): string | null {
  const id = firstField(payload, preset.fields.sender)
  const name = firstField(payload, preset.fields.name)
  const repeatsAnId = preset.fields.sender.some((field) => fieldText(payload, field) === name)
  if (name !== null && !repeatsAnId) return name.slice(0, MAX_NAME).toWellFormed()
  return id === null ? null : `member ${digest([id]).slice(0, 6)}`
}

/**
 * One identity field passes unchanged; several, or the fallback for a missing id, become `m_` + hash. The last identity
 * field is the message's own id, the ones before it say where it is unique.
 */
function identify(push: Push, words: string, context: TranslationContext): Identity & { missing: boolean } {
  const { payload } = push
  const values = context.preset.identity.map((field) => fieldText(payload, field) ?? '')
  const own = values.at(-1) ?? ''
  if (own === '') return fallbackIdentity(payload, words, context)
  if (values.length === 1 && isId(own) && own.isWellFormed()) return { messageId: own as MessageId, originalId: null, missing: false }
  return { messageId: `m_${digest(values)}` as MessageId, originalId: own.slice(0, 256), missing: false }
}

/** Sender, time and words identify a message without an id; without a time nothing does, and it is a new one. */
function fallbackIdentity(payload: JsonObject, words: string, context: TranslationContext): Identity & { missing: boolean } {
  const time = firstField(payload, context.preset.fields.time)
  const sender = firstField(payload, context.preset.fields.sender) ?? ''
  const known = time !== null && time !== '0'
  const id = known ? digest([sender, time, digest([words])]) : context.freshId()
  return { messageId: `m_${id}` as MessageId, originalId: null, missing: !known }
}

function createdAt(payload: JsonObject, preset: Preset, now: number): number {
  for (const field of preset.fields.time) {
    const time = Number(fieldText(payload, field) ?? NaN)
    if (Number.isSafeInteger(time) && time > EARLIEST_TIME && time <= now + LATEST_AHEAD_MS) return time
  }
  return now
}

/** What makes two pushes the same message: words, and number, kinds and sizes of files; no names, no references. */
function contentHash(push: Push): string {
  return digest([push.rawText ?? push.text ?? '', ...push.files.flatMap((file) => [file.type, String(file.byteSize ?? '')])])
}

function forbiddenFields(payload: JsonObject): string[] {
  return FORBIDDEN_FIELDS.filter((field) => Object.hasOwn(payload, field)).map(() => 'forbidden_field')
}

function fileItem(file: PushFile, payload: JsonObject): FileItem {
  return {
    state: 'preparing', type: file.type, filename: filenameOf(file, payload), mimeType: file.mimeType, byteSize: file.byteSize, sourceUrl: file.url,
    ref: null, expiresAt: null, lostBy: null,
  }
}

/** A name that holds a reference or a token is replaced by what the file is; the connector's own words never cross so. */
function filenameOf({ filename, ref, type }: PushFile, payload: JsonObject): string | null {
  if (filename === null) return null
  const secrets = [ref, ...['reply_ref', 'reply.reply_ref', 'reply_token', 'context_token'].map((field) => fieldText(payload, field))]
  if (!secrets.some((secret) => secret !== null && secret !== '' && filename.includes(secret))) return filename.toWellFormed()
  return `${type}${/\.[a-z0-9]{1,8}$/i.exec(filename)?.[0] ?? ''}`
}
