/** Reads the gateway's own /metrics: the demo reports what Prometheus would see. */
import { PREFIX } from '../ops/metric-series.js'

export type Labels = Readonly<Record<string, string>>

/** One scrape, to be asked for values. */
export class Scrape {
  private constructor(private readonly samples: readonly { readonly name: string; readonly labels: string; readonly value: number }[]) {}

  /** Rejects when the listener does not answer 200. */
  static async of(metricsUrl: string): Promise<Scrape> {
    const response = await fetch(metricsUrl)
    if (!response.ok) throw new Error(`GET ${metricsUrl} was answered ${response.status}`)
    return new Scrape((await response.text()).split('\n').flatMap(sample))
  }

  /** Sum of all series of a metric that carry these labels; 0 when there is none. `name` without the prefix. */
  sum(name: string, labels: Labels = {}): number {
    const wanted = Object.entries(labels).map(([key, value]) => `${key}="${value}"`)
    return this.samples
      .filter((one) => one.name === PREFIX + name && wanted.every((label) => one.labels.includes(label)))
      .reduce((sum, { value }) => sum + value, 0)
  }

  /** The largest absolute value of a metric's series: imbalances must not cancel each other out. */
  largest(name: string): number {
    return Math.max(0, ...this.samples.filter((one) => one.name === PREFIX + name).map(({ value }) => Math.abs(value)))
  }
}

function sample(line: string): { name: string; labels: string; value: number }[] {
  const match = /^([a-z_]+)(\{.*\})? (\S+)$/.exec(line)
  return match === null ? [] : [{ name: match[1] ?? '', labels: match[2] ?? '', value: Number(match[3]) }]
}
