/** A plain WebSocket client for the listener's tests. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import WebSocket, { type ClientOptions } from 'ws'
import { KEY } from './fake-route.js'

export const SUBPROTOCOL = 'xagent.connector.packet.v1'

export interface ClientSettings extends Omit<ClientOptions, 'key'> {
  readonly protocols?: string[]
  /** Null = no Authorization header. */
  readonly key?: string | null
}

export interface Client {
  readonly socket: WebSocket
  /** Text frames received so far. */
  readonly frames: string[]
  /** How the connection ended. */
  readonly closed: Promise<{ code: number; reason: string }>
  send(value: unknown): void
  /** The frame at this position, parsed, as soon as it is there. */
  frame(position: number): Promise<Record<string, unknown>>
}

export async function connect(url: string, settings: ClientSettings = {}): Promise<Client> {
  const socket = dial(url, settings)
  const frames: string[] = []
  socket.on('message', (data) => frames.push((data as Buffer).toString()))
  const closed = once(socket, 'close').then(([code, reason]) => ({ code: code as number, reason: (reason as Buffer).toString() }))
  socket.on('error', () => undefined)
  await Promise.race([once(socket, 'open'), closed.then(({ code }) => Promise.reject(new Error(`not opened: ${code}`)))])
  return {
    socket,
    frames,
    closed,
    send: (value) => socket.send(typeof value === 'string' ? value : JSON.stringify(value)),
    frame: async (position) => {
      while (frames.length <= position) await once(socket, 'message')
      return JSON.parse(frames[position] ?? '') as Record<string, unknown>
    },
  }
}

/** The HTTP answer to an upgrade that must be refused. */
export async function refusedUpgrade(url: string, settings: ClientSettings = {}): Promise<{ status: number; headers: IncomingMessage['headers']; body: string }> {
  const socket = dial(url, settings)
  socket.on('error', () => undefined)
  const [, response] = (await Promise.race([
    once(socket, 'unexpected-response'),
    once(socket, 'open').then(() => {
      socket.terminate()
      throw new Error('the upgrade was not refused')
    }),
  ])) as [unknown, IncomingMessage]
  const body = await text(response)
  socket.terminate()
  return { status: response.statusCode ?? 0, headers: response.headers, body }
}

function dial(url: string, { protocols = [SUBPROTOCOL], key = KEY, headers, ...options }: ClientSettings): WebSocket {
  return new WebSocket(url, protocols, { ...options, headers: { ...(key !== null && { authorization: `Bearer ${key}` }), ...headers } })
}

let serial = 0

/** A valid packet. */
export function packet(changes: Record<string, unknown> = {}): Record<string, unknown> {
  serial += 1
  return { schema: 'xagent.connector.packet/v1', packet_id: `pkt-${serial}`, type: 'ping', time: 1_790_000_000_000, payload: {}, ...changes }
}
