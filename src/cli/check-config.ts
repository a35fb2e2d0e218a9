/** `check-config`: says whether a configuration is right, without starting anything. */
import { DEFAULT_CONFIG_FILE, loadCatalog, loadPresets } from '../config/package-files.js'
import { choosePreset } from '../config/preset-file.js'
import { EXIT, print, readFlags, type Command } from './command.js'
import { loadFrom } from './serve.js'

const HELP = `Usage: check-config [--config <file>]

Checks a configuration: keys, units, secrets, files it names. Every problem is one line with file, line, key and what would be
right. Keys that this version accepts but does not use yet are named.

  --config <file>            default ${DEFAULT_CONFIG_FILE}
  --connector <name>=<url>   instead of a file, as for serve
  --help                     this text

Exit code 0 when it is right, 2 when it is not.`

export const checkConfig: Command = {
  name: 'check-config',
  summary: 'check a configuration file',
  help: HELP,
  async run(argv) {
    const flags = readFlags(argv, { config: { type: 'string' }, connector: { type: 'string', multiple: true } })
    if (flags.help === true) {
      print(HELP)
      return EXIT.ok
    }
    const { config, notes, notYet } = loadFrom(flags.config, flags.connector ?? [])
    const presets = loadPresets()
    loadCatalog()
    for (const connector of config.connectors) {
      const preset = connector.preset === 'auto' ? 'auto' : choosePreset(presets, null, connector).name
      print(`connector ${connector.name}: ${connector.url}, preset ${preset}, key ${connector.apiKey === null ? 'none' : 'set'}`)
    }
    print(`xAgent listener ${config.listen.host}:${config.listen.port}, ${config.xagent.apiKeys.length} key(s); admin ${config.admin.host}:${config.admin.port}; store ${withoutSecret(config.store)}`)
    for (const line of [...notes, ...notYet]) print(line)
    print('the configuration is right')
    return EXIT.ok
  },
}

/** A store URL may hold a password. */
const withoutSecret = (store: string): string => store.replace(/\/\/[^@/]*@/, '//…@')
