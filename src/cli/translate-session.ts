/** What `translate` knows of a stream so far: Card, preset, who wrote last on each channel, which finals wait for answers. */
import { choosePreset } from '../config/preset-file.js'
import type { ReplyAddress } from '../core/record.js'
import type { ConversationKey, MessageId, PacketId, ToolId } from '../protocol/ids.js'
import { encodePacket, type JsonObject, type Packet } from '../protocol/packet.js'
import { projectCard, type ProjectedCard } from '../translate/card.js'
import type { Preset } from '../translate/preset.js'
import { cardTools, type CardTools } from '../translate/reply-target.js'

/** What became of one line: documents for standard output, remarks for a person, and the explanation. */
export interface Translated {
  readonly out: readonly string[]
  readonly notes: readonly string[]
  readonly explain: JsonObject
}

/** A push that answers go to. */
export interface Seen {
  readonly line: number
  readonly payload: JsonObject
  readonly conversation: ConversationKey | null
  readonly target: ReplyAddress | null
}

/** A final whose calls wait for their answers. */
export interface OpenFinal {
  readonly messageId: MessageId
  readonly packetId: PacketId
  readonly steps: readonly ToolId[]
  readonly target: ReplyAddress
  done: number
}

export interface ChannelSeen {
  latest: Seen | null
  /** Conversation of the latest private push, for connectors that answer only that one. */
  lastPrivate: ConversationKey | null
  readonly finals: OpenFinal[]
}

export interface SessionOptions {
  readonly presets: ReadonlyMap<string, Preset>
  /** By name; `auto`: by Card or provider, else generic. */
  readonly preset: string
  readonly build: JsonObject
}

/** More channels than these, or finals on one of them, are forgotten, oldest first: a stream may be endless. */
const MAX_KEPT = 10_000

export class TranslateSession {
  #preset: Preset
  #card: ProjectedCard | null = null
  #tools: CardTools = cardTools(null)
  readonly #channels = new Map<string, ChannelSeen>()
  readonly #signIns = new Map<string, string>()
  /** The push that every final answers, whatever the stream says. */
  answered: Seen | null = null

  /** Throws ConfigError when there is no such preset, naming those that there are. */
  constructor(private readonly options: SessionOptions) {
    this.#preset = this.#choose(null)
  }

  get preset(): Preset {
    return this.#preset
  }

  get card(): ProjectedCard | null {
    return this.#card
  }

  get tools(): CardTools {
    return this.#tools
  }

  /** Build facts of the gateway, as Card and health carry them. */
  get build(): JsonObject {
    return this.options.build
  }

  /** A Card decides preset and tools from here on. Null when it cannot be projected. */
  takeCard(body: JsonObject): ProjectedCard | null {
    this.#preset = this.#choose(typeof body['connector_card_id'] === 'string' ? body['connector_card_id'] : null)
    this.#card = projectCard(body, { preset: this.#preset, build: this.options.build, apiKeyRequired: true, files: true, skill: null })
    this.#tools = cardTools(body)
    return this.#card
  }

  /** Without a Card the provider that a push names decides. */
  takeProvider(provider: unknown): void {
    if (this.#card !== null || this.options.preset !== 'auto' || typeof provider !== 'string') return
    const named = this.options.presets.get(provider)
    this.#preset = named ?? this.#choose(`im.${provider}`)
  }

  channel(id: string): ChannelSeen {
    const known = this.#channels.get(id)
    if (known !== undefined) return known
    const fresh: ChannelSeen = { latest: null, lastPrivate: null, finals: [] }
    bounded(this.#channels)
    this.#channels.set(id, fresh)
    return fresh
  }

  expectAnswers(channel: ChannelSeen, final: OpenFinal): void {
    if (channel.finals.length >= MAX_KEPT) channel.finals.shift()
    channel.finals.push(final)
  }

  /** Stands for the gateway's own session id: the same one for the same session. */
  signIn(legacyId: unknown): string {
    const key = typeof legacyId === 'string' ? legacyId : ''
    const known = this.#signIns.get(key)
    if (known !== undefined) return known
    bounded(this.#signIns)
    const id = `auth_${this.#signIns.size + 1}`
    this.#signIns.set(key, id)
    return id
  }

  #choose(cardId: string | null): Preset {
    return choosePreset(this.options.presets, cardId, { preset: this.options.preset, presetOverrides: {} })
  }
}

/** A packet on its way out. `packet_id` tells from which line it comes; the gateway makes a new one for every transmission. */
export function outgoing(line: number, from: Packet, packet: Omit<Packet, 'packetId' | 'time'>, part = 0): string {
  return encodePacket({
    packetId: `pkt_line_${line}${part === 0 ? '' : `_${part}`}` as PacketId, ...packet, ...(from.time !== undefined && { time: from.time }),
  })
}

function bounded(map: Map<string, unknown>): void {
  const [oldest] = map.keys()
  if (map.size >= MAX_KEPT && oldest !== undefined) map.delete(oldest)
}
