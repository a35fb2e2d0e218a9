/** `${VAR}` anywhere in a text and `file:/path` as a whole text (DESIGN §8). What they stand for is never printed. */
import { readFileSync } from 'node:fs'

export type Environment = Readonly<Record<string, string | undefined>>

export interface SecretSources {
  readonly env: Environment
  /** Told what is wrong with the value at a path, in words that do not hold the value. */
  readonly onProblem: (path: readonly PropertyKey[], problem: string) => void
}

/** The same data with every reference replaced. A reference that cannot be resolved is told, and stands as "". */
export function resolveSecrets(value: unknown, sources: SecretSources, path: readonly PropertyKey[] = []): unknown {
  if (typeof value === 'string') return resolveText(value, sources, path)
  if (Array.isArray(value)) return value.map((item, index) => resolveSecrets(item, sources, [...path, index]))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolveSecrets(item, sources, [...path, key])]))
}

function resolveText(text: string, { env, onProblem }: SecretSources, path: readonly PropertyKey[]): string {
  if (text.startsWith('file:')) {
    const content = text.startsWith('file:/') ? readText(text.slice('file:'.length)) : { problem: 'the path after "file:" is not absolute; must be file:/path' }
    if ('text' in content) return content.text.replace(/[\r\n]+$/, '')
    onProblem(path, content.problem)
    return ''
  }
  return text.replace(/\$\{([^}]*)\}?/g, (reference, name: string) => {
    const wellFormed = reference.endsWith('}') && /^[A-Za-z_]\w*$/.test(name)
    const found = wellFormed ? env[name] : undefined
    if (!wellFormed) onProblem(path, '"${" starts no reference; must be ${NAME}, the name of letters, digits and _')
    else if (found === undefined) onProblem(path, `the environment variable ${name} is not set; set it, or remove \${${name}}`)
    return found ?? ''
  })
}

/** The text of a file, or why it cannot be read, as a problem that names it. */
export function readText(file: string): { readonly text: string } | { readonly problem: string } {
  try {
    return { text: readFileSync(file, 'utf8') }
  } catch (error) {
    return { problem: `the file ${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'}); it must exist and be readable` }
  }
}
