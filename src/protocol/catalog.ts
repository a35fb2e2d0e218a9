/**
 * The profile catalog (PROTOCOL "The profile catalog", v2 §1): which packet types may cross, in which direction. It is data
 * (config/catalog.yaml); code asks a negotiated object, and no list of types stands anywhere else.
 */
import { z } from 'zod'
import { ConfigError } from './errors.js'

export type PacketDirection = 'xagent_to_connector' | 'connector_to_xagent'
/** Why a type may not cross; null = it may. `internal_signal`: never answered, whatever it asks. */
export type Refusal = 'unknown_type' | 'not_negotiated' | 'wrong_direction' | 'internal_signal'

const directions = ['xagent_to_connector', 'connector_to_xagent'] as const
const entrySchema = z.strictObject({
  direction: z.enum([...directions, 'both']),
  routing: z.enum(['link', 'channel']),
  projected_to: z.partialRecord(z.enum(directions), z.string().min(1)),
})
const catalogSchema = z.strictObject({
  internal_prefixes: z.array(z.string().min(1)),
  core: z.record(z.string().min(1), entrySchema),
  profiles: z.record(z.string().min(1), z.strictObject({
    target_types: z.array(z.string().min(1)).min(1),
    packets: z.record(z.string().min(1), entrySchema),
  })),
})

type Entry = z.infer<typeof entrySchema>

/** What may cross for one set of profiles. Immutable; the same set gives the same object. */
export interface Negotiated {
  readonly profiles: readonly string[]
  allows(type: string, direction: PacketDirection): boolean
  /** Null when the type may cross, else why it may not. */
  refusal(type: string, direction: PacketDirection): Refusal | null
  /** What the gateway makes of the type: a type, or `gateway`; null when it may not cross. */
  projection(type: string, direction: PacketDirection): string | null
}

export interface Catalog {
  /** The set for these profiles on a target of this type. Profiles that are unknown or not for it add nothing. */
  negotiate(profiles: readonly string[], targetType: string): Negotiated
  /** Every type in the catalog: the closed set of a metric's label. */
  readonly types: ReadonlySet<string>
}

/** Checks catalog data. Throws ConfigError naming each entry that is wrong, and what would be right. */
export function parseCatalog(raw: unknown): Catalog {
  const parsed = catalogSchema.safeParse(raw)
  if (!parsed.success) throw new ConfigError(parsed.error.issues.map((issue) => `catalog: ${issue.path.join('.')}: ${issue.message}`))
  const { core, profiles, internal_prefixes: internal } = parsed.data
  const coreEntries = new Map(Object.entries(core))
  const byProfile = new Map(Object.entries(profiles).map(([id, { target_types: targets, packets }]) => [id, { targets, packets: new Map(Object.entries(packets)) }]))
  const problems = [...projectionProblems('core', coreEntries)]
  for (const [id, { targets, packets }] of byProfile) {
    problems.push(...projectionProblems(id, packets))
    // v2 §2 and PROTOCOL: the IM profiles serve instant messaging only.
    if (id.startsWith('xagent.im.') && targets.some((target) => target !== 'im')) problems.push(`catalog: ${id}: target_types must be [im]`)
    for (const type of packets.keys()) if (coreEntries.has(type)) problems.push(`catalog: ${id}: ${type} is a core packet already`)
  }
  problems.push(...disagreements([...byProfile.values()].map(({ packets }) => packets)))
  const types = new Set([...coreEntries.keys(), ...[...byProfile.values()].flatMap(({ packets }) => [...packets.keys()])])
  for (const type of types) {
    if (internal.some((prefix) => type.startsWith(prefix))) problems.push(`catalog: ${type}: types that start with ${internal.join(' or ')} never cross`)
  }
  if (problems.length > 0) throw new ConfigError(problems)
  const cache = new Map<string, Negotiated>()
  return {
    types,
    negotiate(wanted, targetType) {
      const used = [...new Set(wanted)].filter((id) => byProfile.get(id)?.targets.some((target) => target === targetType)).sort()
      const key = used.join(' ')
      const known = cache.get(key)
      if (known !== undefined) return known
      const entries = new Map([...coreEntries, ...used.flatMap((id) => [...(byProfile.get(id)?.packets ?? [])])])
      const negotiated = negotiatedOf(used, entries, types, internal)
      cache.set(key, negotiated)
      return negotiated
    },
  }
}

function negotiatedOf(profiles: readonly string[], entries: ReadonlyMap<string, Entry>, types: ReadonlySet<string>, internal: readonly string[]): Negotiated {
  const refusal = (type: string, direction: PacketDirection): Refusal | null => {
    const entry = entries.get(type)
    if (entry !== undefined) return goes(entry, direction) ? null : 'wrong_direction'
    if (internal.some((prefix) => type.startsWith(prefix))) return 'internal_signal'
    return types.has(type) ? 'not_negotiated' : 'unknown_type'
  }
  return Object.freeze({
    profiles: Object.freeze([...profiles]),
    allows: (type: string, direction: PacketDirection) => refusal(type, direction) === null,
    refusal,
    projection: (type: string, direction: PacketDirection) => (refusal(type, direction) === null ? (entries.get(type)?.projected_to[direction] ?? null) : null),
  })
}

/** A type that two profiles list must mean the same in both: a negotiated set can hold both of them. */
function disagreements(lists: readonly ReadonlyMap<string, Entry>[]): string[] {
  const first = new Map<string, Entry>()
  return lists.flatMap((packets) => [...packets]).flatMap(([type, entry]) => {
    const earlier = first.get(type)
    if (earlier === undefined) first.set(type, entry)
    return earlier !== undefined && earlier.direction !== entry.direction ? [`catalog: ${type}: two profiles give it different directions; must be one`] : []
  })
}

function projectionProblems(where: string, entries: ReadonlyMap<string, Entry>): string[] {
  return [...entries].flatMap(([type, entry]) =>
    directions
      .filter((direction) => goes(entry, direction) !== Object.hasOwn(entry.projected_to, direction))
      .map((direction) => `catalog: ${where}.${type}: projected_to must name exactly the directions it goes; look at ${direction}`),
  )
}

const goes = (entry: Entry, direction: PacketDirection): boolean => entry.direction === 'both' || entry.direction === direction
