/** A running simulated connector with a client on it, both ended with the test. */
import { startSimConnector, type SimConnector, type SimConnectorOptions } from '../../src/sim/connector.js'
import { SimXagent } from '../../src/sim/xagent.js'
import type { WirePacket } from '../../src/sim/wire-packet.js'

interface Teardown {
  teardown(end: () => unknown): void
}

export async function running(t: Teardown, options: Partial<SimConnectorOptions> = {}): Promise<SimConnector> {
  const connector = await startSimConnector({ kind: 'telegram', ...options })
  t.teardown(() => connector.stop())
  return connector
}

/** A client after hello; the simulated xAgent speaks the common protocol, which is all that is needed here. */
export async function client(t: Teardown, connector: SimConnector, apiKey: string | null = null): Promise<SimXagent> {
  const xagent = new SimXagent({ baseUrl: connector.url, apiKey })
  t.teardown(() => xagent.terminate())
  await xagent.connect()
  return xagent
}

/** A client with one channel that is open and signed in. */
export async function signedIn(t: Teardown, connector: SimConnector): Promise<{ xagent: SimXagent; channelId: string }> {
  const xagent = await client(t, connector)
  const { channelId } = await xagent.openChannel()
  connector.signIn(channelId)
  return { xagent, channelId }
}

export const isPush = (packet: WirePacket): boolean => packet.type === 'message.push'

/** The words of the pushes that a client has got so far. */
export function words(xagent: SimXagent): unknown[] {
  return xagent.events.all('packet').filter(isPush).map(({ payload }) => payload?.['raw_text'])
}

export function invoke(xagent: SimXagent, channelId: string, text: unknown, toolId = 'telegram_message_send'): Promise<WirePacket> {
  return xagent.request('tool.invoke', channelId, { tool_id: toolId, arguments: { text }, context: {} })
}

/** A promise with its resolver: what a scripted tool call waits for. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => { open = resolve })
  return { opened, open }
}
