/** Every duration of the legacy links, in ms, in one table; tests and the composition root may replace single values. */
export interface LegacyTiming {
  /** From the dial to the WebSocket upgrade. */
  readonly handshakeMs: number
  /** From `connector.hello` to its ack. */
  readonly helloMs: number
  /** How long a connector may take to answer our close frame before the socket is cut. */
  readonly closeGraceMs: number
  /** Silence after which a link is pinged. */
  readonly pingAfterMs: number
  /** Silence after a ping that shows the link dead. */
  readonly pingAnswerMs: number
  /** How long a call that timed out excuses silence: it may still run, and it runs in the connector's read loop. */
  readonly lateCallMs: number
  /** Between dials while the connector is away, at first. */
  readonly retryMs: number
  /** How long `retryMs` holds. */
  readonly retryFastForMs: number
  /** First and longest wait of the backoff that follows. */
  readonly backoffInitialMs: number
  readonly backoffMaxMs: number
  /** A link that lived shorter than this counts as a failed dial, so that a connector that hangs up is not dialled in a loop. */
  readonly steadyMs: number
  /** An idle tool link beyond the first one is closed after this. */
  readonly idleToolLinkMs: number
}

export const LEGACY_TIMING: LegacyTiming = {
  handshakeMs: 10_000,
  helloMs: 10_000,
  closeGraceMs: 1_000,
  pingAfterMs: 15_000,
  pingAnswerMs: 15_000,
  lateCallMs: 300_000,
  retryMs: 100,
  retryFastForMs: 300_000,
  backoffInitialMs: 1_000,
  backoffMaxMs: 10_000,
  steadyMs: 1_000,
  idleToolLinkMs: 60_000,
}
