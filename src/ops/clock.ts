/** The one clock of a process (DESIGN §4): shells take it as an argument, so that tests can hold time still. */

/** Takes a timer back; harmless when it has fired already. */
export type Cancel = () => void

export interface Clock {
  /**
   * Unix ms, an integer: wall time at start plus what has run since, so that a step of the system clock neither expires
   * nor prolongs anything.
   */
  wall(): number
  /** Ms since some moment; never goes back. */
  monotonic(): number
  /** Calls `fn` once after `ms`; the returned function cancels that. */
  timer(ms: number, fn: () => void): Cancel
}

/** Longest delay that the runtime's timers can take; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

export function systemClock(): Clock {
  const startedAt = Date.now() - performance.now()
  return {
    wall: () => Math.round(startedAt + performance.now()),
    monotonic: () => performance.now(),
    timer: startTimer,
  }
}

function startTimer(ms: number, fn: () => void): Cancel {
  if (ms > MAX_TIMER_MS) {
    let cancel = startTimer(MAX_TIMER_MS, () => {
      cancel = startTimer(ms - MAX_TIMER_MS, fn)
    })
    return () => cancel()
  }
  const timeout = setTimeout(fn, Math.max(ms, 0))
  return () => clearTimeout(timeout)
}
