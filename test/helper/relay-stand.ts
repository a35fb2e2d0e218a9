/** A stand with a connector of each kind: `telegram` speaks v1 and is translated, `acme` speaks v2 and is relayed. */
import { SimV2Connector, type V2ConnectorOptions } from '../../src/sim/v2-connector.js'
import type { SimXagent } from '../../src/sim/xagent.js'
import { CONNECTOR_KEY, stand, until, type Stand, type StandOptions, type Teardown } from './stand.js'

export interface RelayStand extends Stand {
  readonly acme: SimV2Connector
  /** An xAgent with one open channel on `acme`. */
  relayed(): Promise<{ readonly xagent: SimXagent; readonly channelId: string; readonly southId: string }>
  /** A series of the relayed route. */
  count(name: string, labels?: Record<string, string>): Promise<number>
}

export async function relayStand(t: Teardown, options: StandOptions = {}, v2: Partial<V2ConnectorOptions> = {}): Promise<RelayStand> {
  const acme = new SimV2Connector({ cardId: 'im.acme', apiKey: CONNECTOR_KEY, ...v2 })
  await acme.start()
  t.teardown(() => acme.stop())
  const s = await stand(t, { ...options, connectors: `  - name: acme\n    url: ${acme.url}\n    api_key: "${CONNECTOR_KEY}"` })
  return Object.assign(s, {
    acme,
    async relayed() {
      const xagent = s.xagent({ baseUrl: s.baseUrl('acme') })
      await until(async () => (await xagent.fetch('/connector-card.json')).status === 200, 'its Card is served')
      await xagent.connect()
      const before = new Set(acme.channelIds)
      const { channelId } = await xagent.openChannel()
      const southId = acme.channelIds.find((id) => !before.has(id))
      if (southId === undefined) throw new Error('no channel was opened on the connector')
      return { xagent, channelId, southId }
    },
    count: (name: string, labels: Record<string, string> = {}) => s.metric(name, { connector: 'acme', ...labels }),
  })
}
