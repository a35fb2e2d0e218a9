/** What the parts of one route share. Each piece of state has one owner; this only says where it is. */
import type { Ledger } from '../core/ledger.js'
import type { Gap } from '../core/record.js'
import type { ChannelLimits, Shared } from '../core/state.js'
import type { Readable } from 'node:stream'
import type { FileFacts, StoredFile } from '../files/stored-file.js'
import type { LegacyFiles } from '../legacy/files.js'
import type { Clock } from '../ops/clock.js'
import type { Logger } from '../ops/logger.js'
import type { RouteMetrics } from '../ops/route-metrics.js'
import type { Result } from '../protocol/errors.js'
import type { Catalog, Negotiated } from '../protocol/catalog.js'
import type { ConnectorId, LegacyConnectorId, RouteName } from '../protocol/ids.js'
import type { JsonObject } from '../protocol/packet.js'
import type { ProjectedCard } from '../translate/card.js'
import type { InboundRules } from '../translate/message-push.js'
import type { ChannelTable } from './channel-table.js'
import type { CommitQueue } from './commit-queue.js'

/** The configuration of one route, as its parts use it. All durations in ms, sizes in bytes. */
export interface RouteSettings {
  readonly name: RouteName
  readonly rules: InboundRules
  readonly limits: ChannelLimits
  readonly maxChannels: number
  readonly toolTimeoutMs: number
  readonly drainTimeoutMs: number
  readonly sweepIntervalMs: number
  /** `boundary.mode: observe`: what is wrong in shape alone is counted and goes on where it can. */
  readonly observe: boolean
  /** How often finished time limits of delta streams are looked for, where nothing else happens. */
  readonly deltaSweepMs: number
  readonly deadLetters: { readonly max: number; readonly maxBytes: number; readonly ttlMs: number }
}

/** Where a route's files are, and how they come and go. */
export interface RouteFiles {
  readonly store: FileShelf
  readonly transfers: LegacyFiles
  readonly inbound: 'eager' | 'lazy'
  readonly fetchTimeoutMs: number
  /** Where xAgent's side of the gateway is reachable from the outside; null = no links are sent. */
  readonly publicUrl: string | null
}

/** The part of the file store that a route uses. */
export interface FileShelf {
  receive(source: AsyncIterable<Uint8Array>, facts: FileFacts, options?: { readonly signal?: AbortSignal; readonly ref?: string }): Promise<Result<StoredFile>>
  /** A reference for bytes that stay with the connector until xAgent asks for them. */
  remember(facts: FileFacts, source: string, options?: { readonly ref?: string; readonly expiresAt?: number }): Promise<StoredFile>
  find(ref: string): StoredFile | undefined
  bytes(ref: string): Readable
}

/** What a connector says of itself over HTTP. */
export interface KeptCard {
  readonly card: JsonObject
  readonly skill: string | null
}

/** What the route knows of itself, stored as one record. */
export interface RouteFacts {
  connectorId: ConnectorId | null
  legacyConnectorId: LegacyConnectorId | null
  /** The connector's Card as last fetched. */
  legacyCard: JsonObject | null
  /** The Skill that came with it; only from a connector that speaks v2. */
  legacySkill: string | null
  lastAliveAt: number | null
  gaps: readonly Gap[]
}

export interface RouteContext {
  readonly settings: RouteSettings
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: RouteMetrics
  readonly catalog: Catalog
  readonly table: ChannelTable
  readonly shared: Shared
  readonly ledger: Ledger
  readonly commits: CommitQueue
  readonly facts: RouteFacts
  /** Null = files are not carried. */
  readonly files: RouteFiles | null
  /** The Card as xAgent sees it, from the stored or the latest legacy Card; null while none is known. */
  card(): ProjectedCard | null
  /** `prefix` + an unguessable id. */
  newId(prefix: string): string
  /** Gateway clock, whole Unix ms. */
  now(): number
}

/** What a channel of the legacy side may say, before and after its first Descriptor (DESIGN §6). */
export type NegotiatedFor = (profiles: readonly string[]) => Negotiated
