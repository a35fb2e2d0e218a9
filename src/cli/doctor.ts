/** `doctor`: looks at everything that a configuration needs, and says what to do about what is wrong. */
import { DEFAULT_CONFIG_FILE, loadPresets } from '../config/package-files.js'
import { findingText, fine, type Finding } from '../doctor/finding.js'
import { systemClock } from '../ops/clock.js'
import { EXIT, print, readFlags, type Command } from './command.js'
import { loadFrom } from './serve.js'

const HELP = `Usage: doctor [--config <file>] [--json]

Checks store, folder of files, ports, certificates and clock, and asks each connector for its health, Card and Skill. It opens
no channel and changes nothing; a gateway may be running meanwhile.

  --config <file>            default ${DEFAULT_CONFIG_FILE}
  --connector <name>=<url>   instead of a file, as for serve
  --json                     one object a line: level, subject, text, todo
  --help                     this text

Exit code 0 when nothing is at fault (warnings are none), 1 when something is, 2 when the configuration is wrong.`

export const doctor: Command = {
  name: 'doctor',
  summary: 'check a setup, and say what to do',
  help: HELP,
  async run(argv) {
    const flags = readFlags(argv, { config: { type: 'string' }, connector: { type: 'string', multiple: true }, json: { type: 'boolean' } })
    if (flags.help === true) {
      print(HELP)
      return EXIT.ok
    }
    const { config, notYet } = loadFrom(flags.config, flags.connector ?? [])
    const say = (finding: Finding): void => print(flags.json === true ? JSON.stringify(finding) : findingText(finding))
    // Only here: what native modules need is found wanting by the checks, not by their import.
    const [{ groundFindings }, { connectorFindings }] = await Promise.all([import('../doctor/ground.js'), import('../doctor/connector.js')])
    const clock = systemClock()
    const presets = loadPresets()
    const findings: Finding[] = [
      fine('configuration', notYet.length === 0 ? 'is right' : `is right; ${notYet.length} keys are not used in this version (check-config names them)`),
    ]
    findings.push(...(await groundFindings(config, clock.wall())))
    for (const connector of config.connectors) findings.push(...(await connectorFindings(connector, config, presets, clock)))
    findings.forEach(say)
    return findings.some(({ level }) => level === 'fault') ? EXIT.failed : EXIT.ok
  },
}
