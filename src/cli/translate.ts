/** `translate`: packets on standard input → packets on standard output, offline. Reads line by line and keeps little. */
import { readFileSync } from 'node:fs'
import { loadCatalog, loadPresets } from '../config/package-files.js'
import { buildInfo } from '../ops/build-info.js'
import type { Catalog } from '../protocol/catalog.js'
import { ConfigError } from '../protocol/errors.js'
import { IM_V1 } from '../protocol/im-v1.js'
import { IM_V2 } from '../protocol/im-v2.js'
import type { Packet } from '../protocol/packet.js'
import { scrub } from '../protocol/redact.js'
import { EXIT, print, readFlags, type Command } from './command.js'
import { answersATool, toolAnswered } from './translate-answer.js'
import { CONNECTION_PACKETS, cardSeen, connectionSeen, healthSeen } from './translate-connection.js'
import { finalReceived } from './translate-final.js'
import { readInput, type Input, type Request } from './translate-input.js'
import { linesOf } from './translate-lines.js'
import { LineWriter } from './translate-output.js'
import { pushed, readSeen } from './translate-push.js'
import { TranslateSession, type Translated } from './translate-session.js'

const HELP = `Usage: translate [--preset <name>] [--card <file>] [--to <file>] [--explain] < packets.jsonl

Packets on standard input, one JSON a line, become packets on standard output, one JSON a line: what the gateway would make of
them. Offline: no network, no store, no configuration; accept: all, commands: private, sender_line: off.

  from the connector   message.push → chat.message; the answer to a tool call → its outcome class and the chat.message.ack;
                       hello, open, Descriptor and sign-in answers, Card and health → their northbound form
  from xAgent          chat.message → one tool.invoke for each step, or the ack that refuses it

  --preset <name>   the dialect; default: by the last Card seen, else by the provider of a push, else generic
  --card <file>     the connector's Card, as if it came first
  --to <file>       the push that every final answers; default: the latest on the same channel before it
  --explain         one object a line instead: {"line", "packets", "explain"}: which field came from which, what was left out and
                    why, where an answer would go. Names of fields, no values
  --help            this text

A line may also be {"case":…,"packet":…} or {"case":…,"body":…}, as recordings are. What becomes nothing is said on standard
error with its line number. Ids that only a running gateway can give are stand-ins: pkt_line_7, file_1, upload_1, auth_1,
conn_gateway; a channel keeps its id, as one that xAgent brought does. Bytes of files are not read: what packets say of them is
believed. A final answers the latest push, where the running gateway goes by turns. A tool.invoke on standard output is complete:
it holds the connector's references and tokens.

Exit code 0, 1 when a line was no packet (the others are translated all the same), 2 for wrong flags.`

export const translate: Command = {
  name: 'translate',
  summary: 'packets on standard input to packets on standard output',
  help: HELP,
  async run(argv) {
    const flags = readFlags(argv, { preset: { type: 'string' }, card: { type: 'string' }, to: { type: 'string' }, explain: { type: 'boolean' } })
    if (flags.help === true) {
      print(HELP)
      return EXIT.ok
    }
    const session = new TranslateSession({ presets: loadPresets(), preset: flags.preset ?? 'auto', build: { ...buildInfo(process.env) } })
    if (flags.card !== undefined) readCardFile(session, flags.card)
    if (flags.to !== undefined) readPushFile(session, flags.to)
    return await runLines(session, loadCatalog(), flags.explain === true)
  },
}

async function runLines(session: TranslateSession, catalog: Catalog, explain: boolean): Promise<number> {
  const output = new LineWriter(process.stdout)
  const remarks = new LineWriter(process.stderr)
  let failed = false
  for await (const line of linesOf(process.stdin)) {
    const input: Input = 'problem' in line ? { kind: 'problem', problem: line.problem } : readInput(line.text)
    if (input.kind === 'problem') {
      failed = true
      await remarks.write(`line ${line.number}: ${input.problem}`)
      continue
    }
    const translated = translateInput(session, catalog, input, line.number)
    for (const note of translated.notes) await remarks.write(`line ${line.number}: ${note}`)
    if (explain) await output.write(`{"line":${line.number},"packets":[${translated.out.join(',')}],"explain":${JSON.stringify(translated.explain)}}`)
    else for (const packet of translated.out) await output.write(packet)
    // Nobody reads any more: `translate | head` is no failure.
    if (output.closed) break
  }
  output.check()
  return failed ? EXIT.failed : EXIT.ok
}

function translateInput(session: TranslateSession, catalog: Catalog, input: Exclude<Input, { kind: 'problem' }>, line: number): Translated {
  switch (input.kind) {
    case 'card': return cardSeen(session, input.body)
    case 'health': return healthSeen(session, input.body)
    case 'packet': return translatePacket(session, catalog, input, line)
  }
}

function translatePacket(session: TranslateSession, catalog: Catalog, { packet, request }: { packet: Packet; request: Request | null }, line: number): Translated {
  if (CONNECTION_PACKETS.has(packet.type)) return connectionSeen(session, packet, line)
  if (session.card?.spoken === IM_V2 && packet.type.startsWith('chat.')) return nothing(packet, 'the connector speaks xagent.im.v2, so it is relayed, not translated')
  switch (packet.type) {
    case 'message.push': return pushed(session, packet, line)
    case 'chat.message': return finalReceived(session, packet, line)
    case 'tool.invoke.ack': return toolAnswered(session, packet, request, line)
    case 'error': return answersATool(packet, request) ? toolAnswered(session, packet, request, line) : nothing(packet, 'an error that answers no tool call; the gateway deals with it')
    case 'chat.message.delta': return nothing(packet, 'checked and cached; only the final is sent')
    case 'chat.activity': return nothing(packet, session.preset.typing === null ? 'this connector shows no activity' : `shown by ${session.preset.typing.tool} while it lasts`)
    case 'tool.invoke': return nothing(packet, 'an agent\'s own call: projected arguments cross, to whoever has the turn')
    default: return nothing(packet, unlisted(catalog, packet.type) ?? 'used or answered by the gateway itself')
  }
}

/** Why a type never crosses; null = it is listed. */
function unlisted(catalog: Catalog, type: string): string | null {
  const negotiated = catalog.negotiate([IM_V1, IM_V2], 'im')
  const refusal = negotiated.refusal(type, 'connector_to_xagent')
  if (refusal === null || refusal === 'wrong_direction') return null
  return `${refusal === 'internal_signal' ? 'a signal of xAgent\'s inside' : 'no catalog entry lists it'}: filtered in silence and counted`
}

function nothing(packet: Packet, why: string): Translated {
  const type = scrub(packet.type, 64)
  return { out: [], notes: [`${type} becomes nothing: ${why}`], explain: { from: type, to: null, why } }
}

function readCardFile(session: TranslateSession, file: string): void {
  const input = readInput(textOf('--card', file))
  if (input.kind !== 'card' || session.takeCard(input.body) === null) throw new ConfigError([`--card ${file}: must hold one connector Card, as GET /connector-card.json answers it`])
}

function readPushFile(session: TranslateSession, file: string): void {
  const [first = ''] = textOf('--to', file).split('\n', 1)
  const input = readInput(first)
  const whole = input.kind === 'problem' ? readInput(textOf('--to', file)) : input
  if (whole.kind !== 'packet' || whole.packet.type !== 'message.push') throw new ConfigError([`--to ${file}: must hold one message.push packet`])
  session.answered = readSeen(session, whole.packet, 0).seen
}

function textOf(flag: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError([`${flag} ${file}: cannot be read (${error instanceof Error && 'code' in error ? String(error.code) : 'unknown'})`])
  }
}
