/** What is running: version from the package, the rest from whoever built it (PROTOCOL `build`). */
import { readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface BuildInfo {
  readonly version: string
  readonly git_tag?: string
  readonly git_rev?: string
  readonly build_time: string
}

/** Build facts; `GIT_TAG`, `GIT_REV` and `BUILD_TIME` of the environment win. The time is else that of this file. */
export function buildInfo(env: Readonly<Record<string, string | undefined>>): BuildInfo {
  const file = fileURLToPath(import.meta.url)
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
  return {
    version,
    ...(env['GIT_TAG'] && { git_tag: env['GIT_TAG'] }),
    ...(env['GIT_REV'] && { git_rev: env['GIT_REV'] }),
    build_time: env['BUILD_TIME'] || statSync(file).mtime.toISOString(),
  }
}
