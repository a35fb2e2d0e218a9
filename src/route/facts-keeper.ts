/** What a route knows of itself, in memory and as one record (DESIGN §3 Ids): ids, the connector's Card, last-alive time, gaps. */
import { RECORD_VERSION, ROUTE_KEY, type RouteRecord } from '../core/record.js'
import type { ConnectorId } from '../protocol/ids.js'
import type { CommitQueue } from './commit-queue.js'
import type { RouteFacts } from './context.js'

export class FactsKeeper {
  constructor(
    readonly facts: RouteFacts,
    private readonly commits: CommitQueue,
    private readonly newId: (prefix: string) => string,
  ) {}

  /** Changes facts and stores them all. */
  save(change: Partial<RouteFacts> = {}): void {
    Object.assign(this.facts, change)
    const { connectorId, legacyConnectorId, legacyCard: card, lastAliveAt, gaps } = this.facts
    const record: RouteRecord = { v: RECORD_VERSION, connectorId, legacyConnectorId, card, lastAliveAt, gaps }
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
