/** The links of the listener: how many there may be (DESIGN §8 limits), and how all of them are closed. */
import type { Clock } from '../ops/clock.js'
import type { SocketLink } from './link.js'
import type { Room } from './upgrade.js'

export class LinkTable {
  readonly #links = new Set<SocketLink>()
  readonly #perAddress = new Map<string, number>()
  readonly #maxLinks: number
  readonly #linksPerIp: number

  constructor(limits: { readonly maxLinks: number; readonly linksPerIp: number }) {
    this.#maxLinks = limits.maxLinks
    this.#linksPerIp = limits.linksPerIp
  }

  get size(): number {
    return this.#links.size
  }

  /** Whether one more link from this address may be opened. */
  roomFor(remoteAddress: string): Room {
    if (this.#links.size >= this.#maxLinks) return 'max_links'
    return (this.#perAddress.get(remoteAddress) ?? 0) >= this.#linksPerIp ? 'links_per_ip' : 'free'
  }

  add(link: SocketLink): void {
    this.#links.add(link)
    this.#perAddress.set(link.remoteAddress, (this.#perAddress.get(link.remoteAddress) ?? 0) + 1)
  }

  remove(link: SocketLink): void {
    if (!this.#links.delete(link)) return
    const left = (this.#perAddress.get(link.remoteAddress) ?? 1) - 1
    if (left > 0) this.#perAddress.set(link.remoteAddress, left)
    else this.#perAddress.delete(link.remoteAddress)
  }

  /**
   * Closes every link, evenly spread over `spreadMs`, so that those who come back do not all come at once. Resolves when
   * the last close frame is written.
   */
  async closeAll(code: number, reason: string, spreadMs: number, clock: Clock): Promise<void> {
    const links = [...this.#links]
    await Promise.all(links.map((link, position) => closeAfter(link, (spreadMs * position) / links.length)))

    function closeAfter(link: SocketLink, delayMs: number): Promise<void> {
      return new Promise((resolve) => {
        clock.timer(delayMs, () => {
          link.close(code, reason)
          resolve()
        })
      })
    }
  }
}
