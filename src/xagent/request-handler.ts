/** Every HTTP request of the listener, upgrades included: answered at once, or led to where files come and go. */
import type { HttpRequest, HttpResponse, us_socket_context_t } from 'uWebSockets.js'
import type { BearerKeys } from '../ops/bearer-keys.js'
import { ERROR_CODES } from '../protocol/errors.js'
import type { Admitted } from './data-plane.js'
import { endpointOf } from './endpoint.js'
import { FileDownloads, type FileSource } from './file-download.js'
import { serveUpload } from './file-upload.js'
import { refusal, writeAnswer } from './http-answer.js'
import { answerHttp, type RouteLookup } from './http-routes.js'
import type { LinkTable } from './link-table.js'
import type { ListenerEvent } from './listener-event.js'
import type { NorthRoute } from './port.js'
import { addressText } from './remote-address.js'
import { admitUpgrade, type UpgradeFacts } from './upgrade.js'

export interface RequestHandlerOptions {
  readonly keys: BearerKeys
  readonly links: LinkTable
  readonly route: RouteLookup
  /** Null = no files are carried. */
  readonly files: FileSource | null
  readonly observe: (event: ListenerEvent) => void
}

/** A request is valid only during the call; so is a response, except where files come and go. */
export class RequestHandler {
  readonly #options: RequestHandlerOptions
  readonly #downloads: FileDownloads | null
  readonly #failed = (error: unknown): void => this.#options.observe({ kind: 'failed', route: null, error })
  #accepting = true

  constructor(options: RequestHandlerOptions) {
    this.#options = options
    this.#downloads = options.files === null ? null : new FileDownloads(options.files, this.#failed)
  }

  /** Refuses new links from now on; connections that are kept alive could still ask for one. */
  stopAccepting(): void {
    this.#accepting = false
  }

  http(response: HttpResponse, request: HttpRequest): void {
    this.#guarded(response, () => this.#answer(response, request))
  }

  upgrade(response: HttpResponse, request: HttpRequest, context: us_socket_context_t): void {
    this.#guarded(response, () => {
      const endpoint = endpointOf(request.getUrl())
      const route = endpoint?.kind === 'ws' && endpoint.name !== null ? this.#options.route(endpoint.name) : undefined
      if (route === undefined) this.#answer(response, request)
      else this.#upgradeTo(route, response, request, context)
    })
  }

  #answer(response: HttpResponse, request: HttpRequest): void {
    const { files } = this.#options
    const method = request.getMethod().toUpperCase()
    const facts = { method, path: request.getUrl(), authorization: request.getHeader('authorization') }
    const outcome = answerHttp(facts, this.#options.route, this.#options.keys)
    if (outcome.kind === 'answer') return writeAnswer(response, outcome.answer, method === 'HEAD')
    if (files === null) return writeAnswer(response, refusal(503, 'not_yet', ERROR_CODES.files_not_supported), method === 'HEAD')
    if (outcome.kind === 'upload') serveUpload(response, request, outcome.route, { store: files.store, failed: this.#failed })
    else this.#downloads?.serve(response, request, outcome.route)
  }

  #upgradeTo(route: NorthRoute, response: HttpResponse, request: HttpRequest, context: us_socket_context_t): void {
    const { keys, links, observe } = this.#options
    const remoteAddress = addressText(response.getRemoteAddress())
    const admission = admitUpgrade(factsOf(request), keys, this.#accepting ? links.roomFor(remoteAddress) : 'shutting_down')
    if (!admission.admitted) {
      observe({ kind: 'refused', route: route.name, remoteAddress, reason: admission.reason })
      writeAnswer(response, admission.answer, false)
      return
    }
    // No extension is offered back: compression stays off.
    response.upgrade<Admitted>({ route, remoteAddress }, request.getHeader('sec-websocket-key'), admission.protocol, '', context)
  }

  /** A bug met while serving one request: that request gets a 500, since one without an answer would abort the process. */
  #guarded(response: HttpResponse, call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#failed(error)
      writeAnswer(response, refusal(500, 'internal_error'), false)
    }
  }
}

function factsOf(request: HttpRequest): UpgradeFacts {
  return {
    authorization: request.getHeader('authorization'),
    origin: request.getHeader('origin'),
    host: request.getHeader('host'),
    offeredProtocols: request.getHeader('sec-websocket-protocol'),
  }
}
