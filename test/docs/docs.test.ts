/** What is documented exists, and what exists is documented. */
import t from 'tap'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Registry } from 'prom-client'
import { parseConfig } from '../../src/config/load.js'
import { presetOverridesSchema } from '../../src/config/preset-schema.js'
import { INBOUND_OUTCOMES, OUTBOUND_OUTCOMES } from '../../src/core/outcome.js'
import { REDELIVERY_CAUSES } from '../../src/core/effect.js'
import { DEVIATIONS, FILTER_REASONS, OVERFLOW_KINDS } from '../../src/ops/metric-labels.js'
import { PREFIX, defineSeries } from '../../src/ops/metric-series.js'
import { ERROR_CODES } from '../../src/protocol/errors.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (file: string): string => readFileSync(`${root}${file}`, 'utf8')
/** Words in the first column of the tables under a heading. */
function firstColumn(page: string, heading: string): string[] {
  const section = page.split(`## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  return section.split('\n').filter((line) => line.startsWith('| `')).flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, word]) => word ?? ''))
}

t.test('every outcome and every dead-letter reason, both ways', async (t) => {
  const page = read('docs/outcomes.md')
  t.strictSame(firstColumn(page, 'Inbound'), Object.keys(INBOUND_OUTCOMES))
  t.strictSame(firstColumn(page, 'Outbound'), Object.keys(OUTBOUND_OUTCOMES))
  const reasons = new Set([...Object.values(INBOUND_OUTCOMES), ...Object.values(OUTBOUND_OUTCOMES)].flatMap(({ deadLetter }) => [...deadLetter]))
  t.strictSame(firstColumn(page, 'Dead-letter reasons, and what to do').sort(), [...reasons].sort())
  for (const cause of REDELIVERY_CAUSES) t.match(page, `\`${cause}\``)
  for (const row of [...Object.values(INBOUND_OUTCOMES), ...Object.values(OUTBOUND_OUTCOMES)]) t.ok(page.includes(row.text), row.text)
})

t.test('every metric and its labels, both ways', async (t) => {
  const page = read('docs/metrics.md')
  const registry = new Registry()
  defineSeries(registry)
  const defined = registry.getMetricsAsArray() as unknown as { name: string; labelNames: string[] }[]
  const rows = page.split('\n').filter((line) => line.startsWith(`| \`${PREFIX}`)).map((line) => line.split('|').map((cell) => cell.trim()))
  t.strictSame(rows.map((cells) => cells[1]?.replaceAll('`', '')).sort(), defined.map(({ name }) => name).sort())
  for (const { name, labelNames } of defined) {
    const row = rows.find((cells) => cells[1] === `\`${name}\``)
    t.strictSame([...(row?.[3] ?? '').matchAll(/`(\w+)`/g)].map(([, label]) => label), [...labelNames], name)
  }
  for (const value of [...FILTER_REASONS, ...DEVIATIONS, ...OVERFLOW_KINDS]) t.match(page, `\`${value}\``)
})

t.test('every error code, both ways', async (t) => {
  t.strictSame(firstColumn(read('docs/protocol-mapping.md'), 'Error codes of the gateway'), Object.keys(ERROR_CODES))
})

t.test('every preset key, both ways, and the example is a configuration', async (t) => {
  const page = read('docs/presets.md')
  t.strictSame(firstColumn(page, 'Keys').sort(), Object.keys(presetOverridesSchema.shape).sort())
  const example = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
  t.ok(example.split('\n').length <= 24, 'short, as the heading promises')
  const { config } = parseConfig('example.yaml', `xagent: { api_keys: [k] }\n${example}`, { MY_CHAT_CONNECTOR_KEY: 'c' })
  t.match(config.connectors, [{ name: 'my-chat', apiKey: 'c' }])
})

t.test('the configuration page is the file that ships', async (t) => {
  t.ok(read('docs/configuration.md').includes(read('config/gateway.yaml').trim()))
})

t.test('links between pages, and references from the code, lead somewhere', async (t) => {
  const pages = ['README.md', ...readdirSync(`${root}docs`).filter((file) => file.endsWith('.md')).map((file) => `docs/${file}`)]
  for (const page of pages) {
    for (const [, target] of read(page).matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
      if (target === undefined || /^https?:/.test(target)) continue
      t.ok(existsSync(new URL(target, new URL(page, `file://${root}`))), `${page} → ${target}`)
    }
  }
  const sources = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  for (const source of sources) {
    for (const [, page] of read(`src/${source}`).matchAll(/docs\/([\w-]+)/g)) t.ok(existsSync(`${root}docs/${page}.md`), `src/${source} → docs/${page}`)
  }
})
