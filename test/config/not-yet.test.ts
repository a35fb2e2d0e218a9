import t from 'tap'
import { CONNECTORS, parsed } from './parsed.js'

t.test('keys whose feature comes later are taken, and each is named with its line', async (t) => {
  const { notYet } = parsed(`redis:\n  prefix: "x:"
delivery: { idle_close: 1h }\nadmin: { show_texts: true, write_token: w }\nlimits: { legacy_bytes_per_second: 1MiB }\n${CONNECTORS}`)
  t.strictSame([...notYet].sort(), [
    'gw.yaml:3: delivery.idle_close', 'gw.yaml:4: admin.show_texts', 'gw.yaml:4: admin.write_token', 'gw.yaml:5: limits.legacy_bytes_per_second',
  ].map((place) => `${place}: not yet in this version`).sort())
})

t.test('so are preset keys of a later version', async (t) => {
  const { notYet } = parsed('connectors:\n  - name: a\n    url: http://h\n    preset: wechat\n    reorder_window: 2s\n    refused_file: reject\n    file_limit: { max_bytes: 10MiB }\n    pause_reading: safe\n    descriptor_check: never\n    strip_leading: ["@_user_"]\n')
  t.strictSame([...notYet].sort(), [
    'gw.yaml:8: connectors[0].pause_reading',
  ].map((place) => `${place}: not yet in this version`).sort())
})

t.test('a file without such keys gets no such line', async (t) => {
  t.strictSame(parsed(`store: "redis://127.0.0.1:6379"\nredis: { prefix: "x:", wait_replicas: 1 }\nretention: { ttl: 2h }\nownership: { lease: 9s }\nboundary: { mode: enforce }\nturns: { mode: off }\nfiles: { ttl: 1h, inbound: lazy }\ndeltas: { ttl: 1m }\nactivity: { timeout: 5s }\n${CONNECTORS}`).notYet, [])
})
