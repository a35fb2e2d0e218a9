/** What happened inside a simulator, so that a test waits for events instead of time. */
import { EventEmitter } from 'node:events'

/** Older occurrences of one kind are forgotten beyond this, so that a load test does not grow without end. */
const REMEMBERED = 10_000
const DEFAULT_WAIT_MS = 10_000

/** `Kinds` maps each kind of occurrence to what is known about one. Also an event emitter: `on(kind, listener)`. */
export class Occurrences<Kinds extends object> {
  readonly #emitter = new EventEmitter().setMaxListeners(0)
  readonly #past = new Map<keyof Kinds, unknown[]>()

  record<Kind extends keyof Kinds & string>(kind: Kind, what: Kinds[Kind]): void {
    const past = this.#past.get(kind) ?? []
    past.push(what)
    if (past.length > REMEMBERED) past.shift()
    this.#past.set(kind, past)
    this.#emitter.emit(`on:${kind}`, what)
  }

  on<Kind extends keyof Kinds & string>(kind: Kind, listener: (what: Kinds[Kind]) => void): void {
    this.#emitter.on(`on:${kind}`, listener)
  }

  off<Kind extends keyof Kinds & string>(kind: Kind, listener: (what: Kinds[Kind]) => void): void {
    this.#emitter.off(`on:${kind}`, listener)
  }

  /** All remembered occurrences of a kind, oldest first. */
  all<Kind extends keyof Kinds & string>(kind: Kind): readonly Kinds[Kind][] {
    return (this.#past.get(kind) ?? []) as Kinds[Kind][]
  }

  /** The first occurrence for which the predicate holds: one that was already, or the next. Rejects after `timeoutMs`. */
  async waitFor<Kind extends keyof Kinds & string>(
    kind: Kind, predicate: (what: Kinds[Kind]) => boolean = () => true, timeoutMs = DEFAULT_WAIT_MS,
  ): Promise<Kinds[Kind]> {
    return this.all(kind).find(predicate) ?? this.next(kind, predicate, timeoutMs)
  }

  /** As `waitFor`, but what already was does not count. */
  next<Kind extends keyof Kinds & string>(
    kind: Kind, predicate: (what: Kinds[Kind]) => boolean = () => true, timeoutMs = DEFAULT_WAIT_MS,
  ): Promise<Kinds[Kind]> {
    return new Promise((resolve, reject) => {
      const listener = (what: Kinds[Kind]) => {
        if (!predicate(what)) return
        clearTimeout(timer)
        this.off(kind, listener)
        resolve(what)
      }
      const timer = setTimeout(() => {
        this.off(kind, listener)
        reject(new Error(`no "${kind}" as expected within ${timeoutMs} ms`))
      }, timeoutMs)
      this.on(kind, listener)
    })
  }

  /** Resolves once `count` occurrences of a kind were recorded, with the first `count` of those still remembered. */
  async atLeast<Kind extends keyof Kinds & string>(
    kind: Kind, count: number, timeoutMs = DEFAULT_WAIT_MS,
  ): Promise<readonly Kinds[Kind][]> {
    if (this.all(kind).length < count) await this.next(kind, () => this.all(kind).length >= count, timeoutMs)
    return this.all(kind).slice(0, count)
  }
}
