/** What a route knows of itself (DESIGN §3 Ids): ids, last-alive time and gaps as one record, the connector's Card as a setting. */
import { RECORD_VERSION, ROUTE_KEY, type RouteRecord } from '../core/record.js'
import type { ConnectorId } from '../protocol/ids.js'
import type { JsonObject } from '../protocol/packet.js'
import { openSettings } from '../store/settings.js'
import type { CommitQueue } from './commit-queue.js'
import type { KeptCard, RouteFacts } from './context.js'

const CARD = 'card'
const SKILL = 'skill'

export class FactsKeeper {
  readonly #settings

  constructor(
    readonly facts: RouteFacts,
    private readonly commits: CommitQueue,
    private readonly newId: (prefix: string) => string,
  ) {
    this.#settings = openSettings(commits)
  }

  /** The Card of an earlier run, so that a gateway started while the connector is down still serves it. */
  async loadCard(): Promise<void> {
    this.facts.legacyCard = ((await this.#settings.get(CARD)) as JsonObject | undefined) ?? null
    this.facts.legacySkill = ((await this.#settings.get(SKILL)) as string | undefined) ?? null
  }

  /** Keeps a Card and its Skill; answers whether the Card differs from the one kept before. */
  keepCard({ card, skill }: KeptCard): boolean {
    if (this.facts.legacySkill !== skill) {
      this.facts.legacySkill = skill
      void (skill === null ? this.#settings.delete(SKILL) : this.#settings.set(SKILL, skill))
    }
    if (JSON.stringify(this.facts.legacyCard) === JSON.stringify(card)) return false
    this.facts.legacyCard = card
    void this.#settings.set(CARD, card)
    return true
  }

  /** Changes facts and stores them all. */
  save(change: Partial<RouteFacts> = {}): void {
    Object.assign(this.facts, change)
    const { connectorId, legacyConnectorId, lastAliveAt, gaps } = this.facts
    const record: RouteRecord = { v: RECORD_VERSION, connectorId, legacyConnectorId, lastAliveAt, gaps }
    this.commits.push([{ op: 'put', kind: 'route', key: ROUTE_KEY, value: record }], null)
  }

  /** The id shown to xAgent. With none stored a hello's non-empty one is kept, else one of our own is made. */
  connectorId(proposed: ConnectorId | null): ConnectorId {
    const known = this.facts.connectorId
    if (known !== null) return known
    const chosen = proposed ?? (this.newId('conn_') as ConnectorId)
    this.save({ connectorId: chosen })
    return chosen
  }
}
