/** What one connector says of itself, and whether the gateway can front it (DESIGN §8 `doctor`). Only asks; opens no channel. */
import { readFileSync } from 'node:fs'
import { connect } from 'node:tls'
import { choosePreset } from '../config/preset-file.js'
import type { ConnectorConfig, GatewayConfig } from '../config/schema.js'
import { UndiciLegacyHttp } from '../legacy/http.js'
import { readCard, readHealth, type LegacyCard } from '../legacy/legacy-card.js'
import type { LegacyHttp } from '../legacy/port.js'
import type { Clock } from '../ops/clock.js'
import { IM_V1 } from '../protocol/im-v1.js'
import { IM_V2 } from '../protocol/im-v2.js'
import type { Preset } from '../translate/preset.js'
import { cardTools, fileTools, isTemplate, textTools, type CardTools } from '../translate/reply-target.js'
import { nameInHeader, skillName } from '../translate/skill.js'
import { fault, fine, warning, type Finding } from './finding.js'
import { expiryFinding, messageOf } from './ground.js'

const TLS_TIMEOUT_MS = 5_000
const LOSES: Readonly<Record<Preset['whileClosed'], string>> = {
  lost: 'what people write while the gateway is away is lost: keep it running, and restart it quickly',
  queued: 'what people write while the gateway is away waits with the connector',
  unknown: 'nobody knows whether what people write while the gateway is away is kept',
}

export async function connectorFindings(connector: ConnectorConfig, config: GatewayConfig, presets: ReadonlyMap<string, Preset>, clock: Clock): Promise<Finding[]> {
  const ca = connector.ca === null ? null : readFileSync(connector.ca, 'utf8')
  const http = new UndiciLegacyHttp({ endpoint: { baseUrl: connector.url, apiKey: connector.apiKey, ca }, clock })
  try {
    const certificate = await certificateFinding(connector, ca, clock.wall())
    return [...certificate, ...(await answers(connector, http, config, presets))]
  } finally {
    await http.close()
  }
}

async function answers(connector: ConnectorConfig, http: LegacyHttp, config: GatewayConfig, presets: ReadonlyMap<string, Preset>): Promise<Finding[]> {
  const { name } = connector
  const health = await http.health()
  if (!health.ok) return [fault(name, `${connector.url} does not answer /health (${health.error.message ?? health.error.code})`, health.error.code === 'connector_unauthorized' ? `set the connector's key: connectors[].api_key, or the environment variable of its name` : 'check the URL and that the connector runs')]
  const findings = [readHealth(health.value).ok ? fine(name, 'is well') : warning(name, 'answers, and does not say that it is ok', 'look at the connector\'s own log')]
  const fetched = await http.card()
  const card = fetched.ok ? readCard(fetched.value) : fetched
  if (!card.ok) return [...findings, fault(name, `its Card cannot be used (${card.error.message ?? card.error.code})`, 'the connector must serve a Card of xagent.connector/v1 at /connector-card.json')]
  findings.push(...cardFindings(connector, card.value, presets))
  findings.push(await skillFinding(connector, card.value, http))
  if (config.listen.publicUrl === null && preset(connector, card.value, presets).refusedFile === 'link') {
    findings.push(warning(name, 'files that the connector refuses are to go as links, and listen.public_url is not set: they are rejected', 'set listen.public_url to the address that people reach'))
  }
  return findings
}

const preset = (connector: ConnectorConfig, card: LegacyCard, presets: ReadonlyMap<string, Preset>): Preset => choosePreset(presets, card.cardId, connector)

function cardFindings(connector: ConnectorConfig, card: LegacyCard, presets: ReadonlyMap<string, Preset>): Finding[] {
  const { name } = connector
  const dialect = `${card.cardId} ${card.version ?? 'without a version'}, protocol ${card.protocolVersion ?? '1.0 (not said)'}`
  const profiles: readonly string[] = card.profiles
  if (profiles.includes(IM_V2)) return [fine(name, `${dialect}, speaks ${IM_V2}: it is relayed`)]
  if (!profiles.includes(IM_V1)) return [fault(name, `${dialect}, speaks neither ${IM_V1} nor ${IM_V2}`, 'this connector cannot be fronted')]
  const chosen = preset(connector, card, presets)
  const known = chosen.name !== 'generic'
  return [
    fine(name, dialect),
    known ? fine(name, `preset ${chosen.name}`) : warning(name, 'no preset knows this Card: generic infers what it can', 'check what it inferred in the log, or write a preset (docs/presets.md)'),
    replyFinding(name, chosen, cardTools(card.body)),
    chosen.whileClosed === 'queued' ? fine(name, LOSES.queued) : warning(name, LOSES[chosen.whileClosed], 'watch legacy_gaps_total'),
  ]
}

/** Whether an answer can be sent at all: a rule's tool must stand in the Card. */
function replyFinding(name: string, { reply, inferReply }: Preset, tools: CardTools): Finding {
  const named = reply.filter((rule) => !isTemplate(rule.tool)).map((rule) => rule.tool)
  const missing = named.filter((tool) => !tools.has(tool))
  if (missing.length > 0) return fault(name, `the Card lists no tool ${missing.join(', ')}, which the preset answers with`, 'choose the preset of this connector, or correct its reply rules')
  if (named.length > 0) return fine(name, `answers go through ${[...new Set(named)].join(', ')}`)
  const [text, ...others] = textTools(tools)
  if (reply.length === 0 && !inferReply) return fault(name, 'the preset has no reply rule: nothing can be answered', 'give it one (docs/presets.md)')
  if (text !== undefined && others.length === 0) {
    const [file, ...more] = fileTools(tools)
    return fine(name, `answers go through the tool that a push names, else ${text}${file !== undefined && more.length === 0 ? `; files through ${file.tool}` : '; files are refused'}`)
  }
  return warning(name, text === undefined ? 'no tool takes nothing but a text: only pushes that name a tool can be answered' : 'several tools take nothing but a text: only pushes that name a tool can be answered', 'write a preset with a reply rule (docs/presets.md)')
}

async function skillFinding(connector: ConnectorConfig, card: LegacyCard, http: LegacyHttp): Promise<Finding> {
  const { name } = connector
  const right = skillName(card.cardId)
  if (connector.skill !== null) {
    const said = nameInHeader(readFileSync(connector.skill, 'utf8'))
    return said === right ? fine(name, `Skill ${right} from ${connector.skill}`) : fault(name, `the Skill of ${connector.skill} is named ${said ?? 'nothing'}; this connector's is ${right}`, `write "name: ${right}" into its header`)
  }
  if (!(card.profiles as readonly string[]).includes(IM_V2)) return fine(name, `Skill ${right} is generated; the connector's own is for v1`)
  const skill = await http.skill()
  const own = skill.ok && skill.value !== null && nameInHeader(skill.value) === right
  return fine(name, own ? `Skill ${right} of the connector` : `Skill ${right} is generated: the connector serves none of that name`)
}

async function certificateFinding({ name, url }: ConnectorConfig, ca: string | null, now: number): Promise<Finding[]> {
  const { protocol, hostname, port } = new URL(url)
  if (protocol !== 'https:') return []
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: port === '' ? 443 : Number(port), servername: hostname, timeout: TLS_TIMEOUT_MS, ...(ca !== null && { ca }) })
    const done = (finding: Finding): void => {
      socket.destroy()
      resolve([finding])
    }
    socket.once('secureConnect', () => done(expiryFinding(name, Date.parse(socket.getPeerCertificate().valid_to), now)))
    socket.once('timeout', () => done(fault(name, 'its TLS handshake does not end', 'check that the connector speaks TLS on this port')))
    socket.once('error', (error) => done(fault(name, `its certificate is not accepted (${messageOf(error)})`, 'name its CA in connectors[].ca, or renew the certificate')))
  })
}
