import t from 'tap'
import { KEY, listening } from './fake-route.js'

const bearer = { authorization: `Bearer ${KEY}` }

t.test('serves Card and Skill to anybody, health only with the key', async (t) => {
  const { http } = await listening(t)
  const card = await fetch(`${http}/telegram/connector-card.json`)
  t.equal(card.status, 200)
  t.equal(card.headers.get('content-type'), 'application/json')
  t.same(await card.json(), { schema: 'xagent.connector/v1' })

  const skill = await fetch(`${http}/telegram/skill.md`)
  t.equal(skill.status, 200)
  t.match(skill.headers.get('content-type'), /^text\/markdown/)
  t.equal(skill.headers.get('x-xagent-skill-id'), 'connector-im-telegram')
  t.equal(skill.headers.get('x-xagent-skill-sha256'), 'ab12')
  t.equal(await skill.text(), '# Skill')

  const health = await fetch(`${http}/telegram/health`, { headers: bearer })
  t.equal(health.status, 200)
  t.same(await health.json(), { status: 'ok' })
})

t.test('answers 401 without a key and with a wrong one, and nothing but that', async (t) => {
  const { http } = await listening(t)
  const paths: [string, string][] = [['GET', '/telegram/health'], ['POST', '/telegram/files/uploads']]
  for (const [method, path] of paths) {
    for (const headers of [{}, { authorization: 'Bearer wrong' }, { authorization: KEY }, { authorization: `Basic ${KEY}` }] as Record<string, string>[]) {
      const response = await fetch(http + path, { method, headers })
      t.equal(response.status, 401, `${method} ${path} ${headers['authorization']}`)
      t.equal(response.headers.get('www-authenticate'), 'Bearer')
      t.same(await response.json(), { error: 'unauthorized' })
    }
  }
})

t.test('answers every endpoint without a key where none is configured', async (t) => {
  const { http } = await listening(t, { apiKeys: [] })
  t.equal((await fetch(`${http}/telegram/health`)).status, 200)
  t.equal((await fetch(`${http}/telegram/files/uploads`, { method: 'POST' })).status, 503)
})

t.test('takes both keys while one replaces the other, then only the new one', async (t) => {
  const { http, server } = await listening(t, { apiKeys: ['old-key', 'new-key'] })
  const status = async (key: string) => (await fetch(`${http}/telegram/health`, { headers: { authorization: `bearer ${key}` } })).status
  t.same([await status('old-key'), await status('new-key')], [200, 200])
  server.replaceKeys(['new-key'])
  t.same([await status('old-key'), await status('new-key')], [401, 200])
})

t.test('says not_yet for files, with and without the path prefix', async (t) => {
  const { http } = await listening(t)
  const answers = [
    await fetch(`${http}/telegram/files/uploads`, { method: 'POST', headers: bearer, body: 'x'.repeat(300_000) }),
    await fetch(`${http}/telegram/files/refs/file_abc`),
    await fetch(`${http}/files/refs/file_abc`),
  ]
  for (const answer of answers) {
    t.equal(answer.status, 503)
    t.match(await answer.json(), { error: 'not_yet' })
  }
})

t.test('answers 404 as JSON for unknown names and unknown paths', async (t) => {
  const { http } = await listening(t)
  for (const path of ['/', '/nobody/health', '/nobody/ws', '/__proto__/health', '/nobody/what', '/files/uploads', '/TELEGRAM/health']) {
    const response = await fetch(http + path, { headers: bearer })
    t.equal(response.status, 404, path)
    t.match(await response.json(), { error: 'unknown_connector' }, path)
  }
  for (const path of ['/telegram', '/telegram/', '/telegram/what', '/telegram/health/', '/telegram/files/refs/', '/telegram/media/refs/x', '/telegram//health', '/telegram/files/refs/a/b']) {
    const response = await fetch(http + path, { headers: bearer })
    t.equal(response.status, 404, path)
    t.match(await response.json(), { error: 'not_found' }, path)
  }
})

t.test('answers 405 with Allow for the wrong method, HEAD without a body', async (t) => {
  const { http } = await listening(t)
  const allowed: [string, string][] = [
    ['connector-card.json', 'GET, HEAD'], ['skill.md', 'GET, HEAD'], ['health', 'GET, HEAD'], ['ws', 'GET'], ['files/uploads', 'POST'], ['files/refs/x', 'GET, HEAD'],
  ]
  for (const [path, allow] of allowed) {
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', allow === 'POST' ? 'GET' : 'POST']) {
      const response = await fetch(`${http}/telegram/${path}`, { method, headers: bearer })
      t.equal(response.status, 405, `${method} ${path}`)
      t.equal(response.headers.get('allow'), allow)
      await response.arrayBuffer()
    }
  }
  for (const path of ['connector-card.json', 'skill.md', 'health']) {
    const response = await fetch(`${http}/telegram/${path}`, { method: 'HEAD', headers: bearer })
    t.equal(response.status, 200)
    t.equal(await response.text(), '')
  }
})

t.test('answers 503 with reason and Retry-After while the Card is not known', async (t) => {
  const { http, route } = await listening(t)
  route.cardBody = { status: 503, reason: 'the connector was never reached' }
  const response = await fetch(`${http}/telegram/connector-card.json`)
  t.equal(response.status, 503)
  t.match(response.headers.get('retry-after'), /^\d+$/)
  t.same(await response.json(), { error: 'connector_unavailable', message: 'the connector was never reached' })
})

t.test('answers 204 and 404 for a connector without a Skill', async (t) => {
  const { http, route } = await listening(t)
  route.skillBody = { status: 204, reason: 'none' }
  t.equal((await fetch(`${http}/telegram/skill.md`)).status, 204)
  route.skillBody = { status: 404, reason: 'none' }
  t.equal((await fetch(`${http}/telegram/skill.md`)).status, 404)
})

t.test('leaves out a header whose value would begin another header', async (t) => {
  const { http, route } = await listening(t)
  route.skillBody = { status: 200, contentType: 'text/markdown', body: '#', headers: { 'x-xagent-skill-id': 'a\r\nset-cookie: b=c' } }
  const response = await fetch(`${http}/telegram/skill.md`)
  t.equal(response.status, 200)
  t.equal(response.headers.get('set-cookie'), null)
})

t.test('names the WebSocket endpoint to a client that does not upgrade', async (t) => {
  const { http } = await listening(t)
  const response = await fetch(`${http}/telegram/ws`, { headers: bearer })
  t.equal(response.status, 426)
  t.match(await response.text(), /xagent\.connector\.packet\.v1/)
})

t.test('answers 500 for a bug in a route and goes on', async (t) => {
  const { http, route, events } = await listening(t)
  route.card = () => {
    throw new Error('invented bug')
  }
  t.equal((await fetch(`${http}/telegram/connector-card.json`)).status, 500)
  t.match(events, [{ kind: 'failed', error: { message: 'invented bug' } }])
  t.equal((await fetch(`${http}/telegram/health`, { headers: bearer })).status, 200)
})
