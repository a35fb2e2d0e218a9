/** `${VAR}` anywhere in a text and `file:/path` as a whole text (DESIGN §8). What they stand for is never printed. */
import { readFileSync } from 'node:fs'

export interface SecretSources {
  readonly env: Readonly<Record<string, string | undefined>>
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
  if (text.startsWith('file:/')) {
    const file = text.slice('file:'.length)
    try {
      return readFileSync(file, 'utf8').replace(/\r?\n$/, '')
    } catch (error) {
      onProblem(path, `the file ${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'}); it must exist and be readable`)
      return ''
    }
  }
  return text.replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_reference, name: string) => {
    const found = env[name]
    if (found === undefined) onProblem(path, `the environment variable ${name} is not set; set it, or remove \${${name}}`)
    return found ?? ''
  })
}
