/** Every metric the gateway exports (DESIGN §8 "Metrics"): names, help texts and labels, defined once. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

export const PREFIX = 'xagent_gateway_'

const FAST_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]
const SLOW_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60]

export type Series = ReturnType<typeof defineSeries>

export function defineSeries(registry: Registry) {
  const registers = [registry]
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]) => new Counter<L>({ name: PREFIX + name, help, labelNames, registers })
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[]) => new Gauge<L>({ name: PREFIX + name, help, labelNames, registers })
  const histogram = <L extends string>(name: string, help: string, labelNames: readonly L[], buckets: number[]) =>
    new Histogram<L>({ name: PREFIX + name, help, labelNames, buckets, registers })
  return {
    messages: counter('messages_total', 'Messages by how they ended; outcome deferred is a final put off, not ended', ['connector', 'direction', 'outcome']),
    pendingMessages: gauge('pending_messages', 'Messages waiting now', ['connector', 'direction']),
    pendingBytes: gauge('pending_bytes', 'Size of the inbound messages waiting now', ['connector']),
    oldestPendingAge: gauge('oldest_pending_age_seconds', 'Age of the oldest inbound message waiting, 0 = none', ['connector']),
    blockedChannels: gauge('blocked_channels', 'Channels whose first message waits for a retry', ['connector']),
    conversationsWaiting: gauge('conversations_waiting', 'Conversations waiting for the turn of another one to end', ['connector']),
    turns: counter('turns_total', 'Turns by how they ended', ['connector', 'end']),
    redeliveries: counter('redeliveries_total', 'Further transmissions of the same message', ['connector', 'cause']),
    ackLatency: histogram('ack_latency_seconds', 'From a transmission to the ack that answers it', ['connector'], SLOW_SECONDS),
    translate: histogram('translate_seconds', 'Translating one push', [], FAST_SECONDS),
    packets: counter('packets_total', 'Packets decoded, by the side they came from', ['connector', 'side', 'type']),
    packetsFiltered: counter('packets_filtered_total', 'Packets not let through', ['connector', 'direction', 'reason']),
    deviations: counter('deviations_total', 'Fields stripped or forbidden, identities missing, odd wire shapes', ['connector', 'reason']),
    acksOrphaned: counter('acks_orphaned_total', 'Acks that match no open transmission', ['connector', 'reason']),
    deadLettersTotal: counter('dead_letters_total', 'Messages that became dead letters', ['connector', 'direction', 'reason']),
    deadLetters: gauge('dead_letters', 'Dead letters kept now', ['connector']),
    overflow: counter('overflow_total', 'Kept records removed before their time because there were too many', ['connector', 'kind']),
    toolInvocations: counter('tool_invocations_total', 'Tool calls by what their answer says', ['connector', 'tool', 'outcome']),
    toolSeconds: histogram('tool_seconds', 'From a tool call to its answer', ['connector'], SLOW_SECONDS),
    deltaStreams: gauge('delta_streams', 'Unfinished delta streams cached now', ['connector']),
    legacyUp: gauge('legacy_up', 'Whether the main link to the connector is up', ['connector']),
    xagentConnected: gauge('xagent_connected', 'xAgent links that said hello', ['connector']),
    xagentProtocol: gauge('xagent_protocol', 'xAgent links by the protocol version of their hello', ['connector', 'version']),
    channelsOpen: gauge('channels_open', 'Channels open now', ['connector', 'side']),
    linksPaused: gauge('links_paused', 'Main links that are not read now', ['connector']),
    linksRefused: counter('links_refused_total', 'xAgent links refused at upgrade, or closed for breaking a limit', ['connector', 'reason']),
    routesOwned: gauge('routes_owned', 'Routes that this process owns', []),
    reconnects: counter('reconnects_total', 'Links that came up again', ['connector', 'side']),
    legacyGaps: counter('legacy_gaps_total', 'Times in which the connector could not be read', ['connector']),
    legacyGapSeconds: counter('legacy_gap_seconds_total', 'How long they lasted', ['connector']),
    storeSeconds: histogram('store_seconds', 'Store operations', ['op'], FAST_SECONDS),
    storeErrors: counter('store_errors_total', 'Store operations that failed', ['op']),
    filesBytes: gauge('files_bytes', 'Size of the files kept now: staged for connectors, inbound for xAgent', ['kind']),
    limit: gauge('limit', 'Configured limits', ['connector', 'kind']),
    ledgerImbalance: gauge('ledger_imbalance', 'Messages that the books cannot account for; must be 0', ['connector', 'direction']),
    eventLoopLag: gauge('event_loop_lag_seconds', '99th percentile since the previous scrape', []),
    buildInfo: gauge('build_info', 'What is running; always 1', ['version', 'git_rev', 'node']),
  }
}
