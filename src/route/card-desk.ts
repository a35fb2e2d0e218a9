/** The Card, the Skill and the health that xAgent is served, made from the connector's Card (DESIGN §3). */
import type { Clock } from '../ops/clock.js'
import type { ConnectorCardId } from '../protocol/ids.js'
import type { JsonObject } from '../protocol/packet.js'
import { PROTOCOL_VERSION } from '../protocol/version.js'
import { projectCard, type ProjectedCard } from '../translate/card.js'
import type { Preset } from '../translate/preset.js'
import type { Skill } from '../translate/skill.js'
import type { HttpBody } from '../xagent/port.js'
import type { KeptCard } from './context.js'

/** xAgent gives up after repeated refusals, so a hello waits this long for the first Card. */
const CARD_PATIENCE_MS = 3_000

export interface CardDeskOptions {
  readonly clock: Clock
  /** The preset for a connector's card id, overrides applied. */
  readonly presetFor: (cardId: string | null) => Preset
  /** The configured Skill, or the connector's own; null = one is generated. */
  readonly skillFor: (cardId: string, own: string | null) => Skill | null
  readonly build: JsonObject
  readonly apiKeyRequired: boolean
  readonly carriesFiles: boolean
  /** Claims a card id for this route; another route's name when that serves it already. */
  readonly claimCard: (cardId: ConnectorCardId) => string | null
  /** Another Card is served from now on. */
  readonly onServed: (card: ProjectedCard, preset: Preset, legacy: JsonObject) => void
}

export class CardDesk {
  #card: ProjectedCard | null = null
  #twin: string | null = null
  readonly #waiters = new Set<(known: boolean) => void>()

  constructor(private readonly options: CardDeskOptions) {}

  get card(): ProjectedCard | null {
    return this.#card
  }

  /** Why the Card must not be served though it is known; null = it may. */
  get problem(): string | null {
    return this.#twin
  }

  /** Serves this Card, and with it this Skill, from now on. Answers why it cannot be, or null: one server for one card id (PROTOCOL "Identity and lease"). */
  take({ card: legacy, skill }: KeptCard): string | null {
    const cardId = typeof legacy['connector_card_id'] === 'string' ? legacy['connector_card_id'] : ''
    const other = this.options.claimCard(cardId as ConnectorCardId)
    this.#twin = other === null ? null : `the connector "${other}" already serves the Card ${cardId}`
    if (this.#twin !== null) return this.#twin
    const { build, apiKeyRequired, presetFor, skillFor } = this.options
    const preset = presetFor(cardId)
    const card = projectCard(legacy, { preset, build, apiKeyRequired, files: this.options.carriesFiles, skill: skillFor(cardId, skill) })
    if (card === null) return 'the Card names no connector_card_id'
    const changed = card.version !== this.#card?.version || card.spoken !== this.#card.spoken
    this.#card = card
    if (changed) this.options.onServed(card, preset, legacy)
    for (const waiter of this.#waiters) waiter(true)
    this.#waiters.clear()
    return null
  }

  /** Calls back with whether a Card is served, as soon as that is known, at the latest when patience ends. */
  whenKnown(done: (known: boolean) => void): void {
    if (this.#card !== null || this.#twin !== null) return done(this.#twin === null)
    const cancel = this.options.clock.timer(CARD_PATIENCE_MS, () => {
      this.#waiters.delete(waiter)
      done(false)
    })
    const waiter = (known: boolean): void => {
      cancel()
      done(known)
    }
    this.#waiters.add(waiter)
  }

  /** Nobody is kept waiting when the route stops. */
  stop(): void {
    for (const waiter of this.#waiters) waiter(false)
    this.#waiters.clear()
  }

  cardBody(reason: string | null): HttpBody {
    return this.#served(reason, (card) => ({ status: 200, contentType: 'application/json', body: JSON.stringify(card.card) }))
  }

  skillBody(reason: string | null): HttpBody & { readonly headers?: Readonly<Record<string, string>> } {
    return this.#served(reason, ({ skill }) => ({
      status: 200, contentType: 'text/markdown; charset=utf-8', body: skill.markdown,
      headers: { 'X-XAgent-Skill-ID': skill.id, 'X-XAgent-Skill-SHA256': skill.sha256 },
    }))
  }

  /** 200 while the connector is away: its Descriptors say so, and the gateway itself is well. Merged, never copied. */
  healthBody(reason: string | null): HttpBody {
    return this.#served(reason, ({ cardId, version }) => ({
      status: 200, contentType: 'application/json',
      body: JSON.stringify({ status: 'ok', connector_card_id: cardId, connector_card_version: version, protocol_version: PROTOCOL_VERSION, build: this.options.build }),
    }))
  }

  #served<T extends HttpBody>(reason: string | null, body: (card: ProjectedCard) => T): T | { readonly status: 503; readonly reason: string } {
    const card = this.#card
    const why = this.#twin ?? reason
    if (card === null || why !== null) return { status: 503, reason: why ?? 'the connector has not been reached yet' }
    return body(card)
  }
}
