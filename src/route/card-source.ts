/**
 * The Card that a route serves: from the store at start, from the connector as soon as it answers, again after every
 * reconnect and whenever its health shows another version (DESIGN §3 Card).
 */
import { readCard, readHealth } from '../legacy/legacy-card.js'
import type { LegacyHttp } from '../legacy/port.js'
import type { ConnectorCardId } from '../protocol/ids.js'
import { IM_V1 } from '../protocol/im-v1.js'
import { IM_V2 } from '../protocol/im-v2.js'
import type { JsonObject } from '../protocol/packet.js'
import type { Clock } from '../ops/clock.js'
import type { Logger } from '../ops/logger.js'

const RETRY_MS = { first: 500, max: 10_000 }
const HEALTH_INTERVAL_MS = 60_000

export interface CardSourceOptions {
  readonly http: LegacyHttp
  readonly clock: Clock
  readonly log: Logger
  /** A Card that can be served, new or changed. Answers why it cannot be taken, or null. */
  readonly onCard: (card: { readonly body: JsonObject; readonly cardId: ConnectorCardId; readonly deviations: readonly string[]; readonly skill: string | null }) => string | null
}

export class CardSource {
  /** Why there is no fresh Card; null once one was taken. */
  problem: string | null = 'the connector has not been asked for its Card yet'
  #version: string | null = null
  #attempts = 0
  #cancel: (() => void) | null = null
  #stopped = false
  #fetching = false

  constructor(private readonly options: CardSourceOptions) {}

  /** Asks now; a request that is under way serves as well. */
  refresh(): void {
    this.#cancel?.()
    this.#cancel = null
    if (this.#stopped || this.#fetching) return
    this.#fetching = true
    void this.#fetch()
      .catch((error: unknown) => this.#failed(error instanceof Error ? error.message : 'unknown'))
      .finally(() => {
        this.#fetching = false
        this.#schedule()
      })
  }

  stop(): void {
    this.#stopped = true
    this.#cancel?.()
  }

  async #fetch(): Promise<void> {
    const fetched = await this.options.http.card()
    if (this.#stopped) return
    if (!fetched.ok) return this.#failed(fetched.error.message ?? fetched.error.code)
    const card = readCard(fetched.value)
    if (!card.ok) return this.#failed(card.error.message ?? card.error.code)
    const profiles: readonly string[] = card.value.profiles
    if (!profiles.includes(IM_V1) && !profiles.includes(IM_V2)) return this.#failed(`the Card supports neither ${IM_V1} nor ${IM_V2}`)
    const skill = profiles.includes(IM_V2) ? await this.#skill() : null
    if (this.#stopped) return
    const refused = this.options.onCard({ body: card.value.body, cardId: card.value.cardId, deviations: card.value.deviations, skill })
    if (refused !== null) return this.#failed(refused)
    this.#version = card.value.version
    this.#attempts = 0
    this.problem = null
  }

  /** What a connector that speaks v2 tells agents; one that speaks v1 would have them reply by tool. */
  async #skill(): Promise<string | null> {
    const skill = await this.options.http.skill()
    if (!skill.ok) this.options.log.warn({ code: skill.error.code }, 'the connector\'s Skill could not be fetched: a generated one is served')
    return skill.ok ? skill.value : null
  }

  /** Said once per change, not once per attempt. */
  #failed(problem: string): void {
    if (this.problem !== problem) this.options.log.warn({ problem }, 'the connector has no usable Card')
    this.problem = problem
    this.#attempts += 1
  }

  #schedule(): void {
    if (this.#stopped) return
    const failing = this.problem !== null
    const ms = failing ? Math.min(RETRY_MS.max, RETRY_MS.first * 2 ** Math.min(this.#attempts, 10)) : HEALTH_INTERVAL_MS
    this.#cancel = this.options.clock.timer(ms, () => (failing ? this.refresh() : void this.#checkHealth()))
  }

  /** Another version than the Card's means that the Card has changed. An unreachable health says nothing new. */
  async #checkHealth(): Promise<void> {
    const answer = await this.options.http.health()
    if (this.#stopped) return
    const version = answer.ok ? readHealth(answer.value).cardVersion : null
    if (version !== null && version !== this.#version) this.refresh()
    else this.#schedule()
  }
}
