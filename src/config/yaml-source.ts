/** A YAML text with the lines of its keys, so that every problem can say where it is. */
import { LineCounter, isAlias, isCollection, isMap, isPair, isScalar, parseDocument, visit, type Document, type Node, type Scalar } from 'yaml'
import { ConfigError } from '../protocol/errors.js'

export type KeyPath = readonly PropertyKey[]

/** Where configured values came from: what problems need to name a place, and to show a value or keep it back. */
export interface Source {
  readonly raw: unknown
  /** Start of a problem's line: place and key. */
  locate(path: KeyPath): string
  /** Whether the value was written as it is, so that a problem may repeat it. */
  isLiteral(path: KeyPath): boolean
}

/** Syntax errors in our own words: the library's can repeat the text, which can hold a secret. */
const SYNTAX: ReadonlyMap<string, string> = new Map([
  ['DUPLICATE_KEY', 'the same key stands twice; each key may stand once'],
  ['TAB_AS_INDENT', 'a tab indents the line; must be spaces'],
  ['BAD_INDENT', 'the indentation does not fit the lines around it; keys of one group must start in one column'],
  ['MULTILINE_IMPLICIT_KEY', 'a key goes over several lines; a ":" or a quote may be missing'],
  ['MISSING_CHAR', 'a quote, bracket or other character is missing; close what was opened'],
  ['MULTIPLE_DOCS', 'a second document starts; a file holds one'],
])

export class YamlSource implements Source {
  readonly #document: Document.Parsed
  readonly #lines = new LineCounter()
  readonly #filled = new Set<unknown>()

  /** Throws ConfigError when the text is not valid YAML, naming every line that is not. */
  constructor(readonly file: string, text: string) {
    this.#document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false, uniqueKeys: true })
    const faults = [...this.#document.errors, ...this.#document.warnings]
    if (faults.length === 0) return
    throw new ConfigError(faults.map(({ code, pos }) => `${file}:${this.#lineAt(pos[0])}: ${SYNTAX.get(code) ?? `not valid YAML (${code}); must be valid YAML`}`))
  }

  /** Plain data; undefined for an empty file. */
  get raw(): unknown {
    return this.#document.toJS({ maxAliasCount: 100 }) ?? undefined
  }

  locate(path: KeyPath): string {
    return `${this.file}:${this.#line(path)}: ${pathText(path)}`
  }

  isLiteral(path: KeyPath): boolean {
    const node = this.#document.getIn(path, true)
    return isScalar(node) && !this.#filled.has(node)
  }

  /** Replaces each text value by what `fill` makes of it; keys stay as they are. */
  fillTexts(fill: (value: string, path: KeyPath) => string): void {
    visit(this.#document, {
      Scalar: (key, node, ancestors) => {
        if (key === 'key' || typeof node.value !== 'string') return
        const filled = fill(node.value, pathOf(node, ancestors as readonly (Document | Node)[]))
        if (filled === node.value) return
        node.value = filled
        this.#filled.add(node)
      },
    })
  }

  /** The line of a key, else of the nearest one around it. */
  #line(path: KeyPath): number {
    for (let length = path.length; length > 0; length -= 1) {
      const parent = this.#document.getIn(path.slice(0, length - 1), true)
      const last = path[length - 1]
      const pair = isMap(parent) ? parent.items.find(({ key }) => isScalar(key) && String(key.value) === String(last)) : undefined
      const node = pair?.key ?? (isCollection(parent) && !isMap(parent) ? parent.get(last, true) : undefined)
      const offset = (node as Node | undefined)?.range?.[0]
      if (offset !== undefined) return this.#lineAt(offset)
    }
    return 1
  }

  #lineAt(offset: number): number {
    return this.#lines.linePos(offset).line
  }
}

/** `connectors[0].url`; the whole file for an empty path. */
export function pathText(path: KeyPath): string {
  if (path.length === 0) return 'the whole file'
  return path.map((part, at) => (typeof part === 'number' ? `[${part}]` : `${at === 0 ? '' : '.'}${String(part)}`)).join('')
}

function pathOf(node: Scalar, ancestors: readonly unknown[]): KeyPath {
  const path: PropertyKey[] = []
  for (const [at, ancestor] of ancestors.entries()) {
    const child: unknown = ancestors[at + 1] ?? node
    if (isPair(ancestor)) path.push(isScalar(ancestor.key) ? String(ancestor.key.value) : '?')
    else if (isCollection(ancestor) && !isMap(ancestor) && !isAlias(child)) path.push(ancestor.items.indexOf(child))
  }
  return path
}
