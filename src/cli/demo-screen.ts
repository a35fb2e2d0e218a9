/** What the demo shows: one coloured line per event, each party with its own label, colour and indent. */

export type Party = 'connector' | 'gateway' | 'xagent'
export type Write = (line: string) => void

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, magenta: 35, cyan: 36 } as const
type Style = keyof typeof CODES

const LOOK: Readonly<Record<Party, { readonly label: string; readonly style: Style; readonly indent: number }>> = {
  connector: { label: 'connector', style: 'cyan', indent: 0 },
  gateway: { label: 'gateway', style: 'yellow', indent: 4 },
  xagent: { label: 'xAgent', style: 'magenta', indent: 8 },
}

export interface ScreenOptions {
  readonly write: Write
  readonly colours: boolean
  /** Ms since the demo began. */
  readonly elapsedMs: () => number
}

/** Colours for a terminal, unless NO_COLOR is set; FORCE_COLOR asks for them elsewhere. */
export function wantsColours(env: Readonly<Record<string, string | undefined>>, isTerminal: boolean): boolean {
  return !env['NO_COLOR'] && (isTerminal || Boolean(env['FORCE_COLOR']))
}

export class Screen {
  constructor(private readonly options: ScreenOptions) {}

  scene(title: string): void {
    this.options.write(`\n${this.#styled(title, 'bold')}`)
  }

  says(party: Party, text: string): void {
    const { label, style, indent } = LOOK[party]
    const seconds = `${(this.options.elapsedMs() / 1000).toFixed(2)}s`.padStart(7)
    this.options.write(`${this.#styled(seconds, 'dim')} ${' '.repeat(indent)}${this.#styled(`${label.padEnd(9)} │ ${text}`, style)}`)
  }

  /** A line by nobody. */
  note(text: string): void {
    this.options.write(`${' '.repeat(8)}${this.#styled(text, 'dim')}`)
  }

  /** Rows of a table: name, value, and what was expected where that is known. */
  table(rows: readonly { readonly name: string; readonly value: string; readonly wrong: string | null }[]): void {
    const width = Math.max(...rows.map(({ name }) => name.length))
    for (const { name, value, wrong } of rows) {
      const mark = wrong === null ? this.#styled(value, 'green') : this.#styled(`${value}  (expected ${wrong})`, 'red')
      this.options.write(`  ${name.padEnd(width)}  ${mark}`)
    }
  }

  verdict(good: boolean, text: string): void {
    this.options.write(`\n${this.#styled(text, good ? 'green' : 'red')}`)
  }

  #styled(text: string, style: Style): string {
    return this.options.colours ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text
  }
}
