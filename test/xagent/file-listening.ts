/** A listener with a file store, and requests to it as raw as a test needs them. */
import { once } from 'node:events'
import { request, type ClientRequest, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import type { FileStoreOptions } from '../../src/files/file-store.js'
import type { FileSource } from '../../src/xagent/file-download.js'
import { err } from '../../src/protocol/errors.js'
import { rig, type Rig } from '../files/store-rig.js'
import { KEY, listening, type Listening } from './fake-route.js'

export const CHANNEL = 'cch_1'
export const HEADERS: Readonly<Record<string, string>> = { authorization: `Bearer ${KEY}`, 'x-xagent-connector-channel-id': CHANNEL }

export interface FileListening extends Listening, Rig {
  readonly port: number
  upload(body: FormData, headers?: Record<string, string>): Promise<{ readonly status: number; readonly json: Record<string, unknown> }>
  /** An upload that a test writes piece by piece, headers first. */
  begin(headers?: Record<string, string>): ClientRequest
}

export interface FileListeningOptions {
  readonly store?: Partial<FileStoreOptions>
  readonly fetchRemote?: FileSource['fetchRemote']
}

export async function fileListening(t: Test, options: FileListeningOptions = {}): Promise<FileListening> {
  const made = await rig(t, options.store)
  const files = { store: made.store, fetchRemote: options.fetchRemote ?? (async () => err({ code: 'file_not_available' })) }
  const started = await listening(t, { files })
  started.route.channels.add(CHANNEL)
  t.teardown(() => made.store.close())
  return Object.assign(made, started, {
    port: started.server.port,
    async upload(body: FormData, headers: Record<string, string> = {}) {
      const response = await fetch(`${started.http}/telegram/files/uploads`, { method: 'POST', body, headers: { ...HEADERS, ...headers } })
      return { status: response.status, json: (await response.json()) as Record<string, unknown> }
    },
    begin(headers: Record<string, string> = {}) {
      const begun = request(`${started.http}/telegram/files/uploads`, { method: 'POST', headers: { ...HEADERS, ...headers } })
      begun.on('error', () => {})
      return begun
    },
  })
}

export function form(content: string | Uint8Array<ArrayBuffer>, filename = 'a.txt', type = 'text/plain'): FormData {
  const data = new FormData()
  data.append('file', new Blob([content], { type }), filename)
  return data
}

/** The parts of a form, boundary `xx`, written by hand. */
export const head = (disposition: string, more = ''): string => `--xx\r\nContent-Disposition: ${disposition}\r\n${more}\r\n`
export const TAIL = '\r\n--xx--\r\n'
export const FORM = { 'content-type': 'multipart/form-data; boundary=xx' }

/** The answer to a request that was begun. */
export async function answerTo(begun: ClientRequest): Promise<{ readonly status: number; readonly headers: IncomingMessage['headers']; readonly body: string }> {
  const [response] = (await once(begun, 'response')) as [IncomingMessage]
  return { status: response.statusCode ?? 0, headers: response.headers, body: (await buffer(response)).toString() }
}

/** A socket of its own on which a request was sent. */
export async function rawRequest(port: number, text: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(text)
  return socket
}
