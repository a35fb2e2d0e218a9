/** The parts of a route, wired to each other. What they report goes to the route through its outlets. */
import type { Ended } from '../core/effect.js'
import type { UploadResult } from '../core/event.js'
import type { Ledger } from '../core/ledger.js'
import type { Shared } from '../core/state.js'
import { connectorLinks } from '../legacy/connector-links.js'
import type { MainLink, MainLinkEvents, ToolLinks } from '../legacy/port.js'
import { IM_V1 } from '../protocol/im-v1.js'
import { err, wireError, type StoreError } from '../protocol/errors.js'
import type { Fence } from '../store/port.js'
import { BindingCheck } from './binding-check.js'
import type { CardDesk } from './card-desk.js'
import { ChannelOpener } from './channel-opener.js'
import { ChannelRunner } from './channel-runner.js'
import type { ChannelTable, Entry } from './channel-table.js'
import { CommitQueue } from './commit-queue.js'
import type { RouteContext, RouteFacts } from './context.js'
import { DescriptorBoard } from './descriptor-board.js'
import { FactsKeeper } from './facts-keeper.js'
import { FileFetcher } from './file-fetcher.js'
import { FileSender } from './file-sender.js'
import { finalFiles } from './final-files.js'
import { GapWatch } from './gap-watch.js'
import { Housekeeping } from './housekeeping.js'
import type { InferenceLog } from './inference-log.js'
import { LegacyCalls } from './legacy-calls.js'
import type { NorthLinks } from './north-link.js'
import { NorthPackets } from './north-packets.js'
import { NorthReplies } from './north-replies.js'
import { NorthSignIn } from './north-sign-in.js'
import { RelayedCalls } from './relayed-calls.js'
import { UNSTORED_FILES, storedFiles } from './relay-files.js'
import type { RouteOptions } from './route.js'
import { storedPending } from './route-snapshot.js'
import { SouthPackets } from './south-packets.js'
import { TypingDesk } from './typing-desk.js'
import { V2Relay } from './v2-relay.js'

/** What a route has from its beginning. */
export interface RouteBase {
  readonly options: RouteOptions
  readonly desk: CardDesk
  readonly links: NorthLinks
  readonly table: ChannelTable
  readonly shared: Shared
  readonly ledger: Ledger
  readonly inference: InferenceLog
}

export interface PartsOutlets {
  readonly south: MainLinkEvents
  readonly storeHealth: (healthy: boolean, error: StoreError | null) => void
  readonly fenceLost: () => void
  /** `entry` is null where no channel is known. */
  readonly ended: (entry: Entry | null, ended: Ended) => void
  readonly authTrouble: (entry: Entry, reason: string) => void
  /** No open of a channel is outstanding. */
  readonly settledSouth: () => void
  readonly stopping: () => boolean
  /** Gateway clock, whole Unix ms. */
  readonly now: () => number
}

export interface RouteParts {
  readonly context: RouteContext
  readonly fetcher: FileFetcher | null
  readonly typing: TypingDesk
  readonly relayed: RelayedCalls
  readonly keeper: FactsKeeper
  readonly commits: CommitQueue
  readonly main: MainLink
  readonly tools: ToolLinks
  readonly board: DescriptorBoard
  readonly bindings: BindingCheck
  readonly runner: ChannelRunner
  readonly gaps: GapWatch
  readonly south: SouthPackets
  readonly opener: ChannelOpener
  readonly housekeeping: Housekeeping
  readonly north: NorthPackets
  /** The connector serves another profile now: links say hello anew. */
  readonly rehello: (reason: string) => void
}

/** Makes the parts for one ownership of the route: everything they write carries its fence. Nothing is dialled yet. */
export function assembleParts({ options, desk, links, table, shared, ledger, inference }: RouteBase, fence: Fence, facts: RouteFacts, outlets: PartsOutlets): RouteParts {
  const commits = new CommitQueue(options.store, fence, options.clock, { onHealth: outlets.storeHealth, onFenceLost: outlets.fenceLost })
  const keeper = new FactsKeeper(facts, commits, options.newId)
  const context: RouteContext = { ...options, table, shared, ledger, commits, facts, card: () => desk.card, now: outlets.now }
  const hello = () => (desk.card === null ? null : { cardId: desk.card.cardId, connectorId: facts.legacyConnectorId ?? ('' as const) })
  const supportedProfiles = () => [desk.card?.spoken ?? IM_V1]
  const { main, tools, rehello } = connectorLinks({ ...options.links, clock: options.clock, supportedProfiles, hello }, outlets.south)
  const replies = new NorthReplies(context)
  const sender = context.files === null ? null : new FileSender(context, context.files, (file) => fetcher?.remote(file) ?? Promise.resolve(err(wireError('file_not_available'))))
  const relayFiles = context.files === null || sender === null ? UNSTORED_FILES : storedFiles(context.settings.name, context.files, sender)
  const relay = new V2Relay(context, links, main, relayFiles, replies, { ended: outlets.ended, stopping: outlets.stopping, reopen: (entry) => opener.reopen(entry) })
  const board = new DescriptorBoard(context, links, main, (entry) => {
    context.log.warn({ channelId: entry.id }, 'the account of a channel has left it: signed out, moved to another channel, or replaced by another account')
    runner.dispatch(entry, { type: 'rebound' })
  })
  const bindings = new BindingCheck(context, main, board)
  const typing = new TypingDesk(context, tools)
  const calls = new LegacyCalls(context, tools, () => runner)
  const relayed = new RelayedCalls(context, tools, sender)
  const runner: ChannelRunner = new ChannelRunner(context, table, {
    send: (id, packet) => links.get(id)?.socket.send(packet) ?? 'closed',
    invoke: (entry, effect) => calls.invokeStep(entry, effect),
    reopen: (entry, { messageId }) => opener.reopen(entry, (result) => runner.dispatch(entry, { type: 'reopened', messageId, result })),
    ended: outlets.ended,
    authDoubtful: outlets.authTrouble,
    fetchFiles: (entry, seq) => fetcher?.fetch(entry, seq),
    refreshFiles: (entry, seq, fresh) => fetcher?.refresh(entry, seq, fresh),
    upload: (entry, effect) => {
      const done = (result: UploadResult): void => runner.dispatch(entry, { type: 'uploaded', messageId: effect.messageId, step: effect.step, result })
      if (sender === null) done({ ok: false, temporary: false, code: 'files_not_supported' })
      else void sender.step(entry, effect.ref, effect.fields).then(done)
    },
    typing: (entry, effect) => typing.say(entry, effect),
    deadLetterGone: (bytes) => housekeeping.gone(bytes),
    trim: (entry, kind) => housekeeping.trim(entry, kind),
  })
  const fetcher: FileFetcher | null = context.files === null ? null : new FileFetcher(context, context.files, (entry, seq, lost) => runner.dispatch(entry, { type: 'files_settled', seq, lost }))
  const gaps = new GapWatch(context, () => keeper.save())
  const south = new SouthPackets(context, runner, relay, {
    opensOutstanding: () => opener.outstanding,
    takeDescriptor: (entry, descriptor) => board.take(entry, descriptor),
    ended: (ended) => outlets.ended(null, ended),
    inference,
  })
  const opener: ChannelOpener = new ChannelOpener(context, main, {
    onSouth: (entry, open) => runner.dispatch(entry, { type: 'legacy_changed', open }),
    onDescriptor: (entry, descriptor) => board.take(entry, descriptor),
    onSettled: outlets.settledSouth,
  })
  const housekeeping = new Housekeeping(context, options.store, () => (south.held > 0 ? null : storedPending(table)), (entry) => runner.forget(entry))
  const signIn = new NorthSignIn(context, main, board, bindings, replies, runner)
  const north = new NorthPackets(context, links, runner, opener, main, relayed, signIn, board, replies, relay, {
    connectorId: (proposed) => keeper.connectorId(proposed),
    whenCardKnown: (done) => desk.whenKnown(done),
    stopping: outlets.stopping,
    filesOf: (entry, final) => finalFiles(final, entry.id, context),
  })
  return { context, fetcher, typing, relayed, keeper, commits, main, tools, board, bindings, runner, gaps, south, opener, housekeeping, north, rehello }
}
