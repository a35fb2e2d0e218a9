/** The paths of a Connector Server (PROTOCOL "Who dials whom"), under `/<connector name>/`. */
import type { RouteName } from '../protocol/ids.js'

export type EndpointKind = 'card' | 'skill' | 'health' | 'ws' | 'upload' | 'file'

export interface Endpoint {
  readonly kind: EndpointKind
  /** The connector's name; null for `/files/refs/{ref}` without prefix, which a resolver may have cut off. */
  readonly name: RouteName | null
  readonly methods: readonly string[]
  /** Whether the Bearer key is asked for when one is set. File references carry their own secret. */
  readonly needsKey: boolean
}

const READ = ['GET', 'HEAD']
const PATHS: readonly { readonly pattern: RegExp; readonly kind: EndpointKind; readonly methods: readonly string[]; readonly needsKey: boolean }[] = [
  { pattern: /^connector-card\.json$/, kind: 'card', methods: READ, needsKey: false },
  { pattern: /^skill\.md$/, kind: 'skill', methods: READ, needsKey: false },
  { pattern: /^health$/, kind: 'health', methods: READ, needsKey: true },
  { pattern: /^ws$/, kind: 'ws', methods: ['GET'], needsKey: true },
  { pattern: /^files\/uploads$/, kind: 'upload', methods: ['POST'], needsKey: true },
  { pattern: /^files\/refs\/[^/]+$/, kind: 'file', methods: READ, needsKey: false },
]

/** The endpoint that a path names, or null. Whether a connector of that name exists is not looked at. */
export function endpointOf(path: string): Endpoint | null {
  if (/^\/files\/refs\/[^/]+$/.test(path)) return { kind: 'file', name: null, methods: READ, needsKey: false }
  const parts = /^\/([a-z0-9-]{1,32})\/(.+)$/.exec(path)
  const [, name, rest] = parts ?? []
  if (name === undefined || rest === undefined) return null
  const found = PATHS.find(({ pattern }) => pattern.test(rest))
  return found === undefined ? null : { kind: found.kind, name: name as RouteName, methods: found.methods, needsKey: found.needsKey }
}

/** The connector name that a path starts with, whether or not the rest of it is an endpoint. */
export function nameIn(path: string): RouteName | null {
  return (/^\/([^/]+)(?:\/|$)/.exec(path)?.[1] as RouteName | undefined) ?? null
}
