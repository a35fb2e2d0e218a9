/** Files that ship with the package, found from the sources and from the build alike. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { parseCatalog, type Catalog } from '../protocol/catalog.js'
import type { Preset } from '../translate/preset.js'
import { parsePreset } from './preset-file.js'

/** The folder `config/` beside `src/` or `dist/`. */
const CONFIG = fileURLToPath(new URL('../../config/', import.meta.url))
export const DEFAULT_CONFIG_FILE = 'config/gateway.yaml'

/** The catalog that ships with the package. Throws ConfigError when it was damaged. */
export function loadCatalog(): Catalog {
  return parseCatalog(parse(readFileSync(join(CONFIG, 'catalog.yaml'), 'utf8')))
}

/** The presets that ship with the package, by name. Throws ConfigError naming file and line. */
export function loadPresets(): ReadonlyMap<string, Preset> {
  const folder = join(CONFIG, 'presets')
  const files = readdirSync(folder).filter((file) => file.endsWith('.yaml')).sort()
  return new Map(files.map((file) => parsePreset(`presets/${file}`, readFileSync(join(folder, file), 'utf8'))).map((preset) => [preset.name, preset]))
}
