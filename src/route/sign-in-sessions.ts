/** Sign-in sessions: the gateway's own ids for the connector's (DESIGN §3 Sign-in). In memory: they die with the connector's. */
import type { Entry } from './channel-table.js'

const MAX_SESSIONS = 1_000

export interface SignInSession {
  readonly id: string
  readonly legacyId: string
  readonly entry: Entry
  readonly flowId: string | null
  /** An earlier account may have had the channel until this one signed in. */
  readonly replaces: boolean
  /** It has ended as authenticated. */
  done: boolean
}

export class SignInSessions {
  readonly #byId = new Map<string, SignInSession>()

  constructor(private readonly newId: (prefix: string) => string) {}

  /** The session of a channel with this legacy id; the same own id for the same legacy one. */
  of(entry: Entry, legacyId: string, flowId: string | null, replaces: boolean): SignInSession {
    for (const session of this.#byId.values()) if (session.entry === entry && session.legacyId === legacyId) return session
    const session: SignInSession = { id: this.newId('auth_'), legacyId, entry, flowId, replaces, done: false }
    const [oldest] = this.#byId.keys()
    if (this.#byId.size >= MAX_SESSIONS && oldest !== undefined) this.#byId.delete(oldest)
    this.#byId.set(session.id, session)
    return session
  }

  /** Only the channel that a session belongs to may ask for it. */
  find(id: unknown, entry: Entry): SignInSession | undefined {
    const session = typeof id === 'string' ? this.#byId.get(id) : undefined
    return session?.entry === entry ? session : undefined
  }
}
