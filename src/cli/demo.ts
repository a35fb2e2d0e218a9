/** `demo`: the gateway between a simulated v1 connector and a simulated xAgent, in one terminal. */
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { EXIT, complain, print, readFlags, type Command } from './command.js'
import { Scrape } from './demo-metrics.js'
import { Conversation, settled, type Played } from './demo-scenes.js'
import { Screen, wantsColours } from './demo-screen.js'
import { XAGENT_KEY, setStage, type Stage } from './demo-stage.js'

const ALIVE_MS = 60_000

const HELP = `Usage: demo [--keep]

Runs the gateway between a simulated Telegram connector that only speaks xagent.im.v1 and a simulated xAgent that only speaks
xagent.im.v2, all in this process on free loopback ports, with a store in a temporary folder. A scripted conversation shows a
round trip, a redelivery, an outage of xAgent, a restart of the connector, and a rejected message. It ends by itself.

  --keep    keep everything running afterwards and print the URLs; what you type is written by the simulated user
  --help    this text

Exit code 0 when everything went as scripted, 1 when not. NO_COLOR turns colours off.`

export const demo: Command = { name: 'demo', summary: 'see it work, nothing needed', help: HELP, run: runDemo }

/** Plays the demo and answers its exit code. */
export async function runDemo(argv: readonly string[]): Promise<number> {
  const flags = readFlags(argv, { keep: { type: 'boolean' } })
  if (flags.help === true) {
    print(HELP)
    return EXIT.ok
  }
  const begun = performance.now()
  const screen = new Screen({
    write: print, colours: wantsColours(process.env, process.stdout.isTTY === true), elapsedMs: () => performance.now() - begun,
  })
  screen.scene('Starting')
  const stage = await setStage(screen)
  try {
    const conversation = new Conversation(stage, screen)
    const good = await summary(stage, screen, await conversation.play())
    if (flags.keep === true) await keepOpen(stage, screen, conversation)
    return good ? EXIT.ok : EXIT.failed
  } catch (error) {
    complain(error instanceof Error ? error.message : String(error))
    return EXIT.failed
  } finally {
    screen.scene('Stopping')
    await stage.end()
  }
}

/** Compares what was played with what the gateway's metrics say; answers whether all is as it must be. */
async function summary(stage: Stage, screen: Screen, played: Played): Promise<boolean> {
  const delivered = played.received - played.deadLetters
  const endedAs = (scrape: Scrape, outcome: string) => scrape.sum('messages_total', { direction: 'inbound', outcome })
  const deliveredIn = (scrape: Scrape) => endedAs(scrape, 'accepted') + endedAs(scrape, 'duplicate')
  await settled(stage.metricsUrl, (scrape) => deliveredIn(scrape) - scrape.largest('ledger_imbalance'), (value) => value === delivered)
  const scrape = await Scrape.of(stage.metricsUrl)
  const gapMs = Math.round(scrape.sum('legacy_gap_seconds_total') * 1000)
  const rows = [
    row('received from the connector', scrape.sum('packets_total', { side: 'legacy', type: 'message.push' }), played.received),
    row('delivered to xAgent', deliveredIn(scrape), delivered),
    row('redelivered', scrape.sum('redeliveries_total'), played.redelivered),
    row('kept over the outage', played.keptOverOutage, 3),
    row('answers sent through the connector\'s tool', scrape.sum('messages_total', { direction: 'outbound', outcome: 'accepted' }), 1),
    { name: 'gap with the connector', value: `${gapMs} ms`, wrong: gapMs > 0 ? null : 'more than 0 ms' },
    row('lost by the connector in that gap', played.lostByConnector, 1),
    row('dead letters', scrape.sum('dead_letters_total'), played.deadLetters),
    row('ledger imbalance', scrape.largest('ledger_imbalance'), 0),
  ]
  screen.scene('Summary, read from the gateway\'s /metrics')
  screen.table(rows)
  const good = rows.every(({ wrong }) => wrong === null)
  screen.verdict(good, good ? 'Everything went as scripted.' : 'Something did not go as scripted.')
  return good
}

function row(name: string, value: number, expected: number): { name: string; value: string; wrong: string | null } {
  return { name, value: String(value), wrong: value === expected ? null : String(expected) }
}

/** Until a signal. */
async function keepOpen(stage: Stage, screen: Screen, conversation: Conversation): Promise<void> {
  screen.scene('Running on; Ctrl+C ends it. Type a line to write as the user.')
  screen.note(`Base URL of the connector, for an xAgent:  ${stage.baseUrl}   (key ${XAGENT_KEY})`)
  screen.note(`Metrics:                                   ${stage.metricsUrl}`)
  screen.note(`The v1 connector behind it:                ${stage.connector.url}`)
  const lines = createInterface({ input: process.stdin, terminal: false })
  let said = Promise.resolve()
  lines.on('line', (line) => {
    if (line.trim() !== '') said = said.then(() => conversation.echo(line.trim())).catch((error: unknown) => complain(String(error)))
  })
  // Without a terminal the input may end at once: what runs, runs on until somebody stops it.
  const alive = setInterval(() => undefined, ALIVE_MS)
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
  clearInterval(alive)
  lines.close()
  await said
}
