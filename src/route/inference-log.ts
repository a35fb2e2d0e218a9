/** Says once what `generic` makes of an unknown connector: what is inferred is a guess that a person should see (DESIGN §2). */
import type { Logger } from '../ops/logger.js'
import type { JsonObject } from '../protocol/packet.js'
import { conversationFields } from '../translate/conversation.js'
import type { TranslatedPush } from '../translate/message-push.js'
import type { Preset } from '../translate/preset.js'
import { textTools, type CardTools } from '../translate/reply-target.js'

/** So many different ways of answering are said. */
const MAX_SAID = 20
/** So many pushes of a run are looked at. */
const MAX_LOOKED_AT = 1_000

export class InferenceLog {
  readonly #said = new Set<string>()
  #pushes = 0

  constructor(private readonly log: Logger) {}

  /** A Card is served: which tool answers where a push names none. */
  card(preset: Preset, tools: CardTools): void {
    if (!preset.inferReply) return
    const candidates = textTools(tools)
    const replyTool = candidates.length === 1 ? candidates[0] : null
    const said = replyTool === null ? 'no tool of the Card can be inferred to answer with: only pushes that name one can be answered' : 'the reply tool is inferred from the Card'
    this.#once(`card ${candidates.join()}`, () => this.log.info({ replyTool, candidates }, said))
  }

  /** A push is translated: how it would be answered, and what was taken for its conversation. */
  push(preset: Preset, payload: JsonObject, push: TranslatedPush): void {
    if (!preset.inferReply || push.kind !== 'message' || this.#pushes >= MAX_LOOKED_AT) return
    this.#pushes += 1
    const { target } = push
    const inferred = { tool: target?.tool ?? null, arguments: Object.keys(target?.arguments ?? {}), conversation: conversationFields(payload, preset) }
    this.#once(JSON.stringify(inferred), () => this.log.info(inferred, target === null ? 'nothing says how this push could be answered' : 'how pushes like this are answered is inferred'))
  }

  #once(what: string, say: () => void): void {
    if (this.#said.has(what) || this.#said.size >= MAX_SAID) return
    this.#said.add(what)
    say()
  }
}
