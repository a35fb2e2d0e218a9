/** Every key of the configuration with its default (docs/configuration.md), snake_case in the file, camelCase inside. */
import { z } from 'zod'
import { baseUrl } from './base-url.js'
import { presetOverridesSchema } from './preset-schema.js'
import { count, duration, size } from './units.js'

const text = (what: string) => z.string(`must be ${what}`).min(1, `must be ${what}`)
const STORE_FORM = 'must be memory:, lmdb:<folder> or redis://…'
const port = count(0, 65_535)
/** An address or a name, without scheme, port and path. */
const host = z.string('must be an address or a host name').regex(/^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|[0-9a-f]*:[0-9a-f:.]*(?:%\w+)?)$/i, 'must be an address or a host name, such as 127.0.0.1, 0.0.0.0 or ::1')
const flag = z.boolean('must be true or false')
/** Goes into an HTTP header. "" is no key, as an empty environment variable says. */
const credential = (what: string) => z.string(`must be ${what}`).regex(/^[\x21-\x7e]*$/, `must be ${what} of printable ASCII without spaces`)
const secretOrNone = credential('a token, or null').transform((token) => token || null).nullable()
const tls = z.strictObject({ cert: text('the path of a PEM file'), key: text('the path of a PEM file') }).nullable()

const listen = z.strictObject({
  host: host.default('0.0.0.0'),
  port: port.default(8080),
  public_url: baseUrl('http:// or https://, a host, and at most a path, or null').nullable().default(null),
  tls: tls.default(null),
}).transform(({ public_url: publicUrl, ...rest }) => ({ ...rest, publicUrl }))

const admin = z.strictObject({
  host: host.default('127.0.0.1'),
  port: port.default(8081),
  tls: tls.default(null),
  read_token: secretOrNone.default(null),
  write_token: secretOrNone.default(null),
  insecure: flag.default(false),
  show_texts: flag.default(false),
}).transform(({ read_token: readToken, write_token: writeToken, show_texts: showTexts, ...rest }) => ({ ...rest, readToken, writeToken, showTexts }))

const xagent = z.strictObject({
  api_keys: z.array(credential('a key'), 'must be a list of keys').default([]),
  insecure: flag.default(false),
}).transform(({ api_keys: keys, insecure }) => ({ apiKeys: keys.filter((key) => key !== ''), insecure }))

const redis = z.strictObject({ prefix: text('a key prefix').default('xig:'), wait_replicas: count(0, 100).default(0) })
  .transform(({ prefix, wait_replicas: waitReplicas }) => ({ prefix, waitReplicas }))

const files = z.strictObject({
  dir: text('a folder').default('./data/files'),
  ttl: duration().prefault('24h'),
  max_file_bytes: size().prefault('100MiB'),
  max_total_bytes: size().prefault('2GiB'),
  inbound: z.enum(['eager', 'lazy'], 'must be eager or lazy').default('eager'),
  fetch_timeout: duration().prefault('30s'),
  allowed_hosts: z.array(text('a host name'), 'must be a list of host names').default([]),
  allow_private: flag.default(false),
}).transform((keys) => ({
  dir: keys.dir, ttlMs: keys.ttl, maxFileBytes: keys.max_file_bytes, maxTotalBytes: keys.max_total_bytes, inbound: keys.inbound,
  fetchTimeoutMs: keys.fetch_timeout, allowedHosts: keys.allowed_hosts, allowPrivate: keys.allow_private,
}))

const retention = z.strictObject({
  ttl: duration(1_000).prefault('1h'),
  max_messages: count(1, 1_000_000).default(1_000),
  max_bytes: size().prefault('8MiB'),
  overflow: z.enum(['evict_oldest', 'refuse_newest'], 'must be evict_oldest or refuse_newest').default('evict_oldest'),
  sweep_interval: duration(100).prefault('30s'),
  dead_letters: count(0, 10_000_000).default(10_000),
  dead_letter_bytes: size().prefault('64MiB'),
  dead_letter_ttl: duration(1_000).prefault('7d'),
}).transform((keys) => ({
  ttlMs: keys.ttl, maxMessages: keys.max_messages, maxBytes: keys.max_bytes, overflow: keys.overflow, sweepIntervalMs: keys.sweep_interval,
  deadLetters: keys.dead_letters, deadLetterBytes: keys.dead_letter_bytes, deadLetterTtlMs: keys.dead_letter_ttl,
}))

const backoff = z.strictObject({ initial: duration().prefault('500ms'), max: duration().prefault('30s') })
  .transform(({ initial, max }) => ({ initialMs: initial, maxMs: max }))

const delivery = z.strictObject({
  window: count(1, 1_000).default(1),
  ack_timeout: duration(10).prefault('30s'),
  backoff: backoff.prefault({}),
  max_attempts: count(0, 1_000_000).default(0),
  flush_channels: count(1, 1_000_000).default(50),
  outbound_queue: count(1, 100_000).default(100),
  outbound_wait: duration().prefault('20s'),
  tool_timeout: duration(10).prefault('60s'),
  in_doubt: z.enum(['dead_letter'], 'must be dead_letter (a preset says "retry" per reply rule)').default('dead_letter'),
  drain_timeout: duration().prefault('25s'),
  idle_close: z.union([z.literal('never'), duration(1_000)], 'must be never, or a duration like 10m').default('never'),
}).transform((keys) => ({
  window: keys.window, ackTimeoutMs: keys.ack_timeout, backoff: keys.backoff, maxAttempts: keys.max_attempts, flushChannels: keys.flush_channels,
  outboundQueue: keys.outbound_queue, outboundWaitMs: keys.outbound_wait, toolTimeoutMs: keys.tool_timeout, inDoubt: keys.in_doubt,
  drainTimeoutMs: keys.drain_timeout, idleCloseMs: keys.idle_close === 'never' ? null : keys.idle_close,
}))

const turns = z.strictObject({
  mode: z.enum(['on', 'off'], 'must be on or off').default('on'),
  quiet: duration().prefault('10s'),
  timeout: duration().prefault('5m'),
  max: duration().prefault('15m'),
}).transform(({ mode, quiet, timeout, max }) => ({ mode, quietMs: quiet, timeoutMs: timeout, maxMs: max }))

const deltas = z.strictObject({
  ttl: duration().prefault('10m'), max_streams: count(1).default(1_000), max_bytes: size().prefault('1MiB'), sweep_interval: duration().prefault('1m'),
}).transform((keys) => ({ ttlMs: keys.ttl, maxStreams: keys.max_streams, maxBytes: keys.max_bytes, sweepIntervalMs: keys.sweep_interval }))

const activity = z.strictObject({ timeout: duration().prefault('30s') }).transform(({ timeout }) => ({ timeoutMs: timeout }))
const ownership = z.strictObject({ lease: duration(1_000).prefault('5s') }).transform(({ lease }) => ({ leaseMs: lease }))

const limits = z.strictObject({
  max_frame_bytes: size(1_024).prefault('1MiB'),
  legacy_max_frame_bytes: size(1_024).prefault('16MiB'),
  max_channels: count(1).default(10_000),
  max_pending_bytes: size().prefault('256MiB'),
  max_links: count(1).default(1_000),
  links_per_ip: count(1).default(50),
  hello_timeout: duration(10).prefault('10s'),
  packets_per_second: count(1).default(2_000),
  legacy_bytes_per_second: size().prefault('32MiB'),
}).transform((keys) => ({
  maxFrameBytes: keys.max_frame_bytes, legacyMaxFrameBytes: keys.legacy_max_frame_bytes, maxChannels: keys.max_channels, maxPendingBytes: keys.max_pending_bytes,
  maxLinks: keys.max_links, linksPerIp: keys.links_per_ip, helloTimeoutMs: keys.hello_timeout, packetsPerSecond: keys.packets_per_second,
  legacyBytesPerSecond: keys.legacy_bytes_per_second,
}))

const boundary = z.strictObject({ mode: z.enum(['enforce', 'observe'], 'must be enforce or observe').default('enforce') })
const log = z.strictObject({
  level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'must be trace, debug, info, warn, error, fatal or silent').default('info'),
  pretty: flag.default(false),
})

const connector = presetOverridesSchema.extend({
  name: z.string('must be a name').regex(/^[a-z0-9-]{1,32}$/, 'must be 1 to 32 of a-z, 0-9 and -').refine((name) => name !== 'files', 'must not be "files": that path serves files'),
  url: baseUrl('http:// or https:// with a host and at most a path: no user, no query, no fragment'),
  api_key: credential('a key, or null').nullable().default(null),
  ca: text('the path of a PEM file, or null').nullable().default(null),
  preset: text('auto, or the name of a preset').default('auto'),
  tool_links: count(0, 64).default(4),
  accept: z.union([z.enum(['all', 'private']), z.array(text('an id'))], 'must be all, private, or a list of texts: conversation or sender ids').default('all'),
  commands: z.enum(['all', 'private', 'none'], 'must be all, private or none').default('private'),
  sender_line: z.enum(['off', 'groups'], 'must be off or groups').default('off'),
  skill: text('the path of a Markdown file, or null').nullable().default(null),
}).transform(({ name, url, api_key: apiKey, ca, preset, tool_links: toolLinks, accept, commands, sender_line: senderLine, skill, ...presetOverrides }) => ({
  name, url, apiKey: apiKey === '' ? null : apiKey, ca, preset, toolLinks, accept, commands, senderLine, skill, presetOverrides,
}))

export const configSchema = z.strictObject({
  listen: listen.prefault({}),
  admin: admin.prefault({}),
  xagent: xagent.prefault({}),
  store: z.string(STORE_FORM).regex(/^(memory:$|lmdb:.|rediss?:\/\/.)/, STORE_FORM).default('lmdb:./data'),
  store_sync: flag.default(false),
  redis: redis.prefault({}),
  files: files.prefault({}),
  retention: retention.prefault({}),
  delivery: delivery.prefault({}),
  turns: turns.prefault({}),
  deltas: deltas.prefault({}),
  activity: activity.prefault({}),
  ownership: ownership.prefault({}),
  limits: limits.prefault({}),
  boundary: boundary.prefault({}),
  log: log.prefault({}),
  connectors: z.array(connector, 'must be a list of connectors').min(1, 'must name at least one connector: - { name: …, url: … }'),
}).transform(({ store_sync: storeSync, ...rest }) => ({ ...rest, storeSync }))

export type GatewayConfig = z.output<typeof configSchema>
export type ConnectorConfig = GatewayConfig['connectors'][number]
