import t from 'tap'
import { parseCatalog } from '../../src/protocol/catalog.js'

const entry = (direction: string) => ({ direction, routing: 'channel', projected_to: { [direction]: 'gateway' } })
const profile = (packets: object, targets: readonly string[] = ['im']) => ({ target_types: targets, packets })
const catalog = (profiles: object) => parseCatalog({ internal_prefixes: [], core: {}, profiles })

t.test('two profiles cannot give one type different directions', async (t) => {
  const up = profile({ x: entry('connector_to_xagent') })
  t.throws(() => catalog({ 'xagent.a.v1': up, 'xagent.b.v1': profile({ x: entry('xagent_to_connector') }) }), { code: 'config_invalid', message: /x: two profiles give it different directions/ })
  t.equal(catalog({ 'xagent.a.v1': up, 'xagent.b.v1': up }).types.has('x'), true)
})

t.test('a profile of any target type can be listed, and serves that type alone', async (t) => {
  const browser = catalog({ 'xagent.browser-runtime.v1': profile({ x: entry('xagent_to_connector') }, ['browser']) })
  t.equal(browser.negotiate(['xagent.browser-runtime.v1'], 'browser').allows('x', 'xagent_to_connector'), true)
  t.equal(browser.negotiate(['xagent.browser-runtime.v1'], 'im').allows('x', 'xagent_to_connector'), false)
})
