/** Binding the listener's address, with a reason when that does not work. */
import { createServer } from 'node:net'
import uws, { type TemplatedApp, type us_listen_socket, type us_socket } from 'uWebSockets.js'
import { listenProblem } from '../ops/listen-problem.js'

export interface Bound {
  readonly socket: us_listen_socket
  readonly port: number
}

/** Missing from the typings, as is `listen` with host and options together. */
const { LIBUS_LISTEN_EXCLUSIVE_PORT } = uws as unknown as { readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number }
type ListenAt = (host: string, port: number, options: number, done: (socket: us_listen_socket | false) => void) => TemplatedApp

/**
 * Binds `host:port`; port 0 takes a free one. The port is taken exclusively: by default two processes would share it, and
 * each would get some of the links. A port of its own number can be bound again at once after a restart; one that was given
 * as 0 cannot for a minute (it gets no SO_REUSEADDR). Throws ConfigError that names the address and why it cannot be used.
 */
export async function bind(app: TemplatedApp, host: string, port: number): Promise<Bound> {
  const socket = await new Promise<us_listen_socket | false>((resolve) => {
    const listenAt = app.listen.bind(app) as unknown as ListenAt
    listenAt(host, port, LIBUS_LISTEN_EXCLUSIVE_PORT, resolve)
  })
  if (socket === false) throw listenProblem(host, port, await whyNot(host, port))
  return { socket, port: uws.us_socket_local_port(socket as us_socket) }
}

/** uWebSockets.js only says that it failed; the runtime's own server says why. */
function whyNot(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code))
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve(undefined)))
  })
}
