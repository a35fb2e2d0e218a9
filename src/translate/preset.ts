/**
 * A preset: what one connector's dialect needs, as data (DESIGN §2, §8 "Preset keys"). Read from config/presets/*.yaml by
 * config/preset-file.ts, used by translate/ and core/. Matching is by literal text, never by regular expression.
 */

export type OutcomeClass = 'sent' | 'temporary' | 'permanent' | 'auth' | 'in_doubt'

/** Payload field → the literal values that match, "*" = any but an empty one. An empty condition always holds. */
export type Condition = Readonly<Record<string, readonly (string | number)[]>>

export interface ReplyRule {
  /** Fields of the push that is answered; the first rule whose condition holds is used. */
  readonly when: Condition
  /** A tool id, or "{reply.tool_id}": the tool that the push itself names. */
  readonly tool: string
  /** Argument name → template. "{text}" is the part; "{name}" or "{reply.name}" is a field of the push that is answered. */
  readonly arguments: Readonly<Record<string, string>>
  readonly result: {
    /** Result field that must hold one of the values, else the outcome is in doubt. */
    readonly sentWhen: Condition
    /** Result field whose value proves the sending; null = none needed. "", 0 and absence prove nothing. */
    readonly proof: string | null
    /** Result field that names the recipient, and the push field it must equal; null = the tool does not say. */
    readonly recipient: { readonly field: string; readonly equals: string } | null
  }
  /** The call that sends a file; null = this way sends none. One argument's template is "{file_ref}". */
  readonly file: {
    readonly tool: string
    readonly arguments: Readonly<Record<string, string>>
    /** Multipart fields of the upload before it. */
    readonly uploadFields: Readonly<Record<string, string>>
  } | null
  /** `retry` only for a tool known to be idempotent. */
  readonly inDoubt: 'dead_letter' | 'retry'
  /** The connector answers the private chat that wrote last: refused as `reply_target_moved` when that was another one. */
  readonly lastChatOnly: boolean
}

/** A call that shows or hides "is typing". The argument whose template is "{typing}" gets true or false. */
export interface TypingRule {
  readonly tool: string
  readonly arguments: Readonly<Record<string, string>>
}

export interface Preset {
  readonly name: string
  /** Raised with any change of meaning; stands in every record that the preset shaped. */
  readonly version: number
  readonly cardIds: readonly string[]
  /** Payload fields that identify a message within its channel. One passes unchanged, several are hashed. */
  readonly identity: readonly string[]
  readonly fields: {
    /** Target event time in Unix ms; the first usable one. */
    readonly time: readonly string[]
    readonly sender: readonly string[]
    readonly name: readonly string[]
    /** Fields any of which `accept` may name: conversation or sender ids. */
    readonly acceptable: readonly string[]
  }
  /**
   * Fields that make the conversation inside a channel; each entry is a list of alternatives, the first present one counts.
   * Empty: the channel is one conversation.
   */
  readonly conversation: readonly (readonly string[])[]
  /** When a push comes from a group. No sign of a group = private. */
  readonly groupWhen: readonly Condition[]
  /** What counts as a user message; a field that is absent does not decide. */
  readonly userMessageWhen: Condition
  /** `text`, `content` and `activation_message` are the connector's own wrapper and never the user's words. */
  readonly wrapperText: boolean
  /** Leading words that start with one of these are placeholders, not the user's ("@_user_"). */
  readonly stripLeading: readonly string[]
  readonly reorderWindowMs: number
  readonly reply: readonly ReplyRule[]
  /** Rule for messages that answer nobody (system-initiated): its tool and arguments; null = `no_reply_target`. */
  readonly defaultTarget: ReplyRule | null
  readonly targetTtlMs: number
  readonly textLimit: { readonly max: number; readonly unit: 'code_points' | 'utf16' | 'bytes' }
  /** What the connector takes: size, and kinds of content as mime types or their first half ("image/"); empty = everything. */
  readonly fileLimit: { readonly maxBytes: number; readonly content: readonly string[] }
  /** What becomes of a file that it does not take: the final is refused, or a link is sent. */
  readonly refusedFile: 'reject' | 'link'
  readonly outcomes: readonly { readonly contains: string; readonly class: Exclude<OutcomeClass, 'sent'> }[]
  /** Tool that shows the person that an answer is being made; null = the connector has none. */
  readonly typing: TypingRule | null
  readonly hiddenTools: readonly string[]
  /** Result fields of a relayed tool call that an agent may see. */
  readonly resultFields: readonly string[]
  readonly whileClosed: 'lost' | 'queued' | 'unknown'
  readonly pauseReading: 'safe' | 'lossy'
  /** How often a channel's Descriptor is asked for, ms, where a lost binding is not told; null = never. */
  readonly descriptorCheckMs: number | null
  /** `generic` only: infer reply tool from the Card where no rule fits. */
  readonly inferReply: boolean
}
