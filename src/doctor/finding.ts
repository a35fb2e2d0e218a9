/** What `doctor` found out about one thing, and what to do about it. */

export interface Finding {
  /** `fault`: something does not work; `warning`: it works, and somebody should know. */
  readonly level: 'ok' | 'warning' | 'fault'
  /** What was looked at: "store", "listen", a connector's name. */
  readonly subject: string
  readonly text: string
  /** What a person can do; null where nothing is wrong. */
  readonly todo: string | null
}

export const fine = (subject: string, text: string): Finding => ({ level: 'ok', subject, text, todo: null })
export const warning = (subject: string, text: string, todo: string): Finding => ({ level: 'warning', subject, text, todo })
export const fault = (subject: string, text: string, todo: string): Finding => ({ level: 'fault', subject, text, todo })

const MARKS = { ok: 'ok     ', warning: 'WARNING', fault: 'FAULT  ' } as const

/** One finding as lines for a person. */
export function findingText({ level, subject, text, todo }: Finding): string {
  return `${MARKS[level]}  ${subject}: ${text}${todo === null ? '' : `\n         → ${todo}`}`
}
