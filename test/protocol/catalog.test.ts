import t from 'tap'
import { loadCatalog } from '../../src/config/package-files.js'
import { parseCatalog, type PacketDirection } from '../../src/protocol/catalog.js'
import { ConfigError } from '../../src/protocol/errors.js'

const DOWN: PacketDirection = 'xagent_to_connector'
const UP: PacketDirection = 'connector_to_xagent'
const V1 = 'xagent.im.v1'
const V2 = 'xagent.im.v2'
const shipped = loadCatalog()

/** PROTOCOL "Packets". */
const CORE: readonly (readonly [type: string, directions: readonly PacketDirection[]])[] = [
  ...['connector.hello', 'channel.open', 'channel.close', 'auth.start', 'auth.status', 'auth.cancel', 'auth.logout', 'connection.descriptor.get', 'tool.invoke']
    .flatMap((type) => [[type, [DOWN]], [`${type}.ack`, [UP]]] as const),
  ['connection.descriptor.push', [UP]], ['tool.progress.push', [UP]], ['ping', [DOWN, UP]], ['pong', [DOWN, UP]], ['error', [DOWN, UP]],
]

t.test('core packets pass in their direction alone, whatever was negotiated', async (t) => {
  for (const profiles of [[], [V1], [V2]]) {
    const negotiated = shipped.negotiate(profiles, 'im')
    for (const [type, directions] of CORE) {
      for (const direction of [DOWN, UP]) t.equal(negotiated.allows(type, direction), directions.includes(direction), `${type} ${direction}`)
    }
  }
})

t.test('xagent.im.v2: messages and acks both ways, deltas and activity only from xAgent (v2 §4)', async (t) => {
  const v2 = shipped.negotiate([V2], 'im')
  for (const type of ['chat.message', 'chat.message.ack']) for (const direction of [DOWN, UP]) t.equal(v2.allows(type, direction), true, `${type} ${direction}`)
  for (const type of ['chat.message.delta', 'chat.activity']) {
    t.equal(v2.allows(type, DOWN), true, type)
    t.equal(v2.refusal(type, UP), 'wrong_direction', type)
  }
  t.equal(v2.refusal('message.push', UP), 'not_negotiated')
})

t.test('xagent.im.v1: pushes from the connector, nothing of v2', async (t) => {
  const v1 = shipped.negotiate([V1], 'im')
  t.equal(v1.allows('message.push', UP), true)
  t.equal(v1.refusal('message.push', DOWN), 'wrong_direction')
  for (const type of ['chat.message', 'chat.message.delta', 'chat.message.ack', 'chat.activity']) for (const direction of [DOWN, UP]) t.equal(v1.refusal(type, direction), 'not_negotiated')
})

t.test('session synchronisation is in no catalog and never an unknown request (v2 §1)', async (t) => {
  for (const type of ['session.sync_request', 'session.sync_message', 'session.sync_end', 'session.anything']) {
    t.equal(shipped.types.has(type), false)
    for (const direction of [DOWN, UP]) t.equal(shipped.negotiate([V1, V2], 'im').refusal(type, direction), 'internal_signal')
  }
})

t.test('types outside the catalog are unknown, also those named like parts of every object', async (t) => {
  for (const type of ['approval.request', 'chat.history', 'chat.message.', 'CHAT.MESSAGE', '__proto__', 'constructor', 'toString']) {
    t.equal(shipped.negotiate([V2], 'im').refusal(type, DOWN), 'unknown_type', type)
    t.equal(shipped.negotiate([V2], 'im').projection(type, DOWN), null)
  }
})

t.test('profiles that are unknown, or not for the target type, add nothing', async (t) => {
  t.strictSame(shipped.negotiate([V2, 'xagent.im.v9', '__proto__'], 'im').profiles, [V2])
  const browser = shipped.negotiate([V1, V2], 'browser')
  t.strictSame(browser.profiles, [])
  t.equal(browser.refusal('chat.message', DOWN), 'not_negotiated')
  t.equal(browser.allows('ping', DOWN), true)
})

t.test('the same set gives the same object, in any order, which cannot be changed', async (t) => {
  const negotiated = shipped.negotiate([V1, V2], 'im')
  t.equal(shipped.negotiate([V2, V1, V2], 'im'), negotiated)
  t.not(shipped.negotiate([V2], 'im'), negotiated)
  t.throws(() => { (negotiated as { allows: unknown }).allows = () => true }, TypeError)
  t.throws(() => (negotiated.profiles as string[]).push('x'), TypeError)
})

t.test('every allowed type says what it becomes; others become nothing', async (t) => {
  t.equal(shipped.negotiate([V1], 'im').projection('message.push', UP), 'chat.message')
  t.equal(shipped.negotiate([V2], 'im').projection('chat.message', DOWN), 'tool.invoke')
  const all = shipped.negotiate([V1, V2], 'im')
  for (const type of shipped.types) for (const direction of [DOWN, UP]) t.equal(all.projection(type, direction) !== null, all.allows(type, direction), `${type} ${direction}`)
  t.equal(shipped.negotiate([], 'im').projection('message.push', UP), null)
})

t.test('faults in catalog data are refused, all at once', async (t) => {
  const entry = (direction: string) => ({ direction, routing: 'channel', projected_to: Object.fromEntries((direction === 'both' ? [DOWN, UP] : [direction]).map((way) => [way, 'gateway'])) })
  const profile = (packets: object, targets: readonly string[] = ['im']) => ({ target_types: targets, packets })
  const faults = (profiles: object, core: object = { ping: entry('both') }): readonly string[] => {
    try {
      parseCatalog({ internal_prefixes: ['session.'], core, profiles })
      return []
    } catch (error) {
      if (error instanceof ConfigError) return error.problems
      throw error
    }
  }
  t.strictSame(faults({ [V2]: profile({ 'chat.message': entry('both') }) }), [])
  t.match(faults({ 'xagent.a.v1': profile({ x: { ...entry('both'), direction: 'sideways' } }) }), [/xagent\.a\.v1\.packets\.x\.direction/])
  t.match(faults({ 'xagent.a.v1': profile({ x: { ...entry('both'), colour: 'red' } }) }), [/colour/])
  t.match(faults({ 'xagent.a.v1': profile({ x: { ...entry('both'), projected_to: { [UP]: 'y' } } }) }), [/xagent\.a\.v1\.x.*projected_to/])
  t.match(faults({ [V2]: profile({ 'chat.message': entry('both') }, ['im', 'email']) }), [/xagent\.im\.v2: target_types/])
  t.match(faults({ 'xagent.a.v1': profile({ ping: entry('both') }) }), [/ping is a core packet already/])
  t.match(faults({ 'xagent.a.v1': profile({ 'session.sync_end': entry(UP) }) }), [/session\.sync_end/])
  t.match(faults({ 'xagent.a.v1': profile({ ping: entry('both') }), [V1]: profile({}, ['email']) }), [/ping/, /target_types/])
  t.throws(() => parseCatalog(null), { code: 'config_invalid' })
})
