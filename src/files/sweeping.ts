/** The regular sweep of the file store. */
import type { Cancel, Clock } from '../ops/clock.js'
import type { Logger } from '../ops/logger.js'
import type { FileStore } from './file-store.js'

/** Sweeps every `intervalMs`, counted from the end of a sweep, until the answered function is called. */
export function sweepRegularly(store: Pick<FileStore, 'sweep'>, clock: Clock, intervalMs: number, log: Pick<Logger, 'error'>): Cancel {
  let stopped = false
  let cancel: Cancel = () => {}
  const next = (): void => {
    if (stopped) return
    cancel = clock.timer(intervalMs, () => {
      store.sweep().catch((error: unknown) => log.error({ err: error }, 'expired files could not be swept')).finally(next)
    })
  }
  next()
  return () => {
    stopped = true
    cancel()
  }
}
