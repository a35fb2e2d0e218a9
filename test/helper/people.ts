/** What agents do in scenarios where several people share a channel, and what has become of it. */
import { packetProblem } from './north-schemas.js'
import { until, type Stand } from './stand.js'
import type { SimConnector } from '../../src/sim/connector.js'
import type { WirePacket } from '../../src/sim/wire-packet.js'
import type { SimXagent } from '../../src/sim/xagent.js'

/** A whole run of an agent: thinking, one final, idle. Resolves with the ack of the final. */
export async function run(xagent: SimXagent, channelId: string, messageId: string, text: string): Promise<WirePacket> {
  xagent.sendActivity(channelId, 'thinking')
  const ack = await xagent.sendFinal(channelId, { messageId, text })
  xagent.sendActivity(channelId, 'idle')
  return ack
}

/** Who was reached, and by what words, in order; "is typing" left out. */
export function reached(connector: SimConnector): (readonly [to: string, text: string])[] {
  return connector.sent.filter(({ toolId }) => !toolId.endsWith('_typing')).map(({ to, text }) => [to, text] as const)
}

/** The words that have come to xAgent, redeliveries included. */
export const heard = (xagent: SimXagent): string[] => xagent.received.map(({ text }) => text)

/** Resolves when so many messages were accepted by xAgent, as the gateway counts them. */
export function accepted(s: Stand, messages: number): Promise<void> {
  return until(async () => (await s.metric('messages_total', { direction: 'inbound', outcome: 'accepted' })) === messages, `${messages} messages are accepted`)
}

/** Resolves when so many conversations wait for somebody else's turn to end. */
export function waiting(s: Stand, conversations: number): Promise<void> {
  return until(async () => (await s.metric('conversations_waiting')) === conversations, `${conversations} conversations wait`)
}

/** Resolves when the ledgers of both directions are even (DESIGN §8). */
export function balanced(s: Pick<Stand, 'metric'>): Promise<void> {
  return until(async () => {
    const both = await Promise.all(['inbound', 'outbound'].map((direction) => s.metric('ledger_imbalance', { direction })))
    return both.every((imbalance) => imbalance === 0)
  }, 'the ledgers are even')
}

/** What is wrong with the packets that xAgent was sent. */
export function problems(xagent: SimXagent): string[] {
  return xagent.events.all('packet').map(packetProblem).filter((problem) => problem !== null)
}

/** Everything that xAgent can see of a connector: each packet that it got, and the documents. */
export async function seen(xagent: SimXagent): Promise<string> {
  const documents = await Promise.all(['/connector-card.json', '/skill.md', '/health'].map((path) => xagent.fetch(path)))
  return [...xagent.events.all('packet').map((packet) => JSON.stringify(packet)), ...documents.map(({ text }) => text)].join('\n')
}
