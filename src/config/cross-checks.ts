/** Rules over several keys of a configuration, and files that must be readable (DESIGN §8). */
import { accessSync, constants, statSync, type Stats } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { loadPresets } from './package-files.js'
import type { GatewayConfig } from './schema.js'
import { readText } from './secrets.js'
import type { Problem } from './yaml-problems.js'
import { nameInHeader, skillName } from '../translate/skill.js'

export function crossProblems(config: GatewayConfig): Problem[] {
  return [...exposureProblems(config), ...valueProblems(config), ...nameProblems(config), ...presetProblems(config), ...skillProblems(config), ...fileProblems(config), ...folderProblems(config)]
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)
}

/** An open listener is refused where others can reach it, unless somebody says that it is meant. */
function exposureProblems({ listen, xagent, admin }: GatewayConfig): Problem[] {
  const problems: Problem[] = []
  if (xagent.apiKeys.length === 0 && !xagent.insecure && !isLoopback(listen.host)) {
    problems.push({
      path: ['xagent', 'api_keys'],
      text: `no key, and listen.host ${listen.host} is not loopback; set a key (XAGENT_API_KEY), listen on 127.0.0.1, or set xagent.insecure: true`,
    })
  }
  if (admin.insecure || isLoopback(admin.host)) return problems
  const tokens = [['read_token', admin.readToken], ['write_token', admin.writeToken]] as const
  return problems.concat(tokens.filter(([, token]) => token === null).map(([key]) => ({
    path: ['admin', key], text: `no token, and admin.host ${admin.host} is not loopback; set one, listen on 127.0.0.1, or set admin.insecure: true`,
  })))
}

function valueProblems({ delivery: { backoff }, files, listen, admin }: GatewayConfig): Problem[] {
  const problems: Problem[] = []
  if (backoff.initialMs > backoff.maxMs) problems.push({ path: ['delivery', 'backoff', 'initial'], text: 'is longer than delivery.backoff.max; must not be' })
  if (files.maxFileBytes > files.maxTotalBytes) problems.push({ path: ['files', 'max_file_bytes'], text: 'is more than files.max_total_bytes; must not be' })
  if (listen.port !== 0 && listen.port === admin.port && (isAnyAddress(listen.host) || isAnyAddress(admin.host) || listen.host === admin.host)) {
    problems.push({ path: ['admin', 'port'], text: `${admin.port} is listen.port, too; the two listeners must have ports of their own` })
  }
  return problems
}

const isAnyAddress = (host: string): boolean => host === '0.0.0.0' || host === '::'

function presetProblems({ connectors, listen }: GatewayConfig): Problem[] {
  const presets = [...loadPresets().keys()]
  return connectors.flatMap(({ preset, presetOverrides }, index) => {
    const problems: Problem[] = []
    if (preset !== 'auto' && !presets.includes(preset)) {
      problems.push({ path: ['connectors', index, 'preset'], text: `there is no preset "${preset}"; must be auto, ${presets.join(', ')}` })
    }
    if (presetOverrides.refused_file === 'link' && listen.publicUrl === null) {
      problems.push({ path: ['connectors', index, 'refused_file'], text: 'a link needs listen.public_url, which is not set; set it, or refused_file: reject' })
    }
    return problems
  })
}

function nameProblems({ connectors }: GatewayConfig): Problem[] {
  const first = new Map<string, number>()
  return connectors.flatMap(({ name }, index) => {
    const earlier = first.get(name)
    if (earlier === undefined) first.set(name, index)
    return earlier === undefined ? [] : [{ path: ['connectors', index, 'name'], text: `"${name}" is the name of connectors[${earlier}] already; names must differ` }]
  })
}

function fileProblems({ listen, admin, connectors }: GatewayConfig): Problem[] {
  const files: readonly (readonly [readonly PropertyKey[], string | null])[] = [
    [['listen', 'tls', 'cert'], listen.tls?.cert ?? null], [['listen', 'tls', 'key'], listen.tls?.key ?? null],
    [['admin', 'tls', 'cert'], admin.tls?.cert ?? null], [['admin', 'tls', 'key'], admin.tls?.key ?? null],
    ...connectors.flatMap(({ ca, skill }, index) => [[['connectors', index, 'ca'], ca], [['connectors', index, 'skill'], skill]] as const),
  ]
  return files.flatMap(([path, file]) => {
    const content = file === null ? null : readText(file)
    return content !== null && 'problem' in content ? [{ path, text: content.problem }] : []
  })
}

/**
 * The name in a Skill's header must be the connector's (docs/protocol.md "Connector Card"). Where the preset says for which Cards
 * it is, it is known before the connector is asked.
 */
function skillProblems({ connectors }: GatewayConfig): Problem[] {
  const presets = loadPresets()
  return connectors.flatMap(({ skill, preset }, index) => {
    const content = skill === null ? null : readText(skill)
    if (content === null || 'problem' in content) return []
    const name = nameInHeader(content.text)
    const names = (presets.get(preset)?.cardIds ?? []).map(skillName)
    if (names.length > 0 ? name !== null && names.includes(name) : name?.startsWith(skillName(''))) return []
    const right = names.length > 0 ? names.join(' or ') : 'connector-<card id in lower case, with - for every other character>'
    const wrong = name === null ? 'has no name in a header of its own' : `has the name "${name.slice(0, 60)}" in its header`
    return [{ path: ['connectors', index, 'skill'], text: `the Skill ${wrong}; it must begin with the lines ---, name: ${right}, ---` }]
  })
}

/** Nothing is made here: a check leaves no trace. */
function folderProblems({ files }: GatewayConfig): Problem[] {
  const reason = whyNoFolder(resolve(files.dir))
  return reason === null ? [] : [{ path: ['files', 'dir'], text: `the folder ${files.dir} cannot be used (${reason}); it must be one that can be made or written` }]
}

/** Why a folder can neither be written nor be made where the nearest one above it is; null = it can. */
function whyNoFolder(folder: string): string | null {
  const found = statOf(folder)
  if (found === undefined && dirname(folder) !== folder) return whyNoFolder(dirname(folder))
  if (found?.isDirectory() === false) return `${folder} is no folder`
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return null
  } catch (error) {
    return `${folder}: ${(error as NodeJS.ErrnoException).code ?? 'unknown'}`
  }
}

/** Nothing below a file is there, either: what is above says so. */
function statOf(folder: string): Stats | undefined {
  try {
    return statSync(folder, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}
