import t from 'tap'
import { parsePreset } from '../../src/config/preset-file.js'
import { ConfigError } from '../../src/protocol/errors.js'

const MINIMAL = 'name: mine\nversion: 1\ncard_ids: [im.mine]\n'
const faults = (text: string): readonly string[] => {
  try {
    parsePreset('mine.yaml', text)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

t.test('keys of later versions are taken in a preset file', async (t) => {
  t.strictSame(faults(`${MINIMAL}file_limit: { max_bytes: 10MiB, content: [PNG] }\nrefused_file: link
reply:\n  - { tool: send, arguments: { text: "{text}" }, file_tool: send_media, upload_fields: { recipient_ref: "{from}" } }\n`), [])
})

t.test('typing, descriptor_check and reorder_window are read; the call needs its flag', async (t) => {
  const typing = 'typing: { tool: mine_typing, arguments: { to: "{from}", on: "{typing}" } }'
  t.match(parsePreset('mine.yaml', `${MINIMAL}${typing}\ndescriptor_check: 5m\nreorder_window: 2s\n`), {
    typing: { tool: 'mine_typing', arguments: { to: '{from}', on: '{typing}' } }, descriptorCheckMs: 300_000, reorderWindowMs: 2_000,
  })
  t.match(parsePreset('mine.yaml', `${MINIMAL}typing: null\ndescriptor_check: never\n`), { typing: null, descriptorCheckMs: null })
  t.match(parsePreset('mine.yaml', MINIMAL), { typing: null, descriptorCheckMs: null, reorderWindowMs: 0 })
  t.match(faults(`${MINIMAL}typing: { tool: mine_typing, arguments: { to: "{from}" } }\n`), [/typing\.arguments: .*; must give exactly one argument the value "\{typing\}"$/])
})

t.test('faults in a preset file name file, line and key', async (t) => {
  t.match(faults('name: mine\n'), [/^mine\.yaml:1: version: is missing; must be/, /^mine\.yaml:1: card_ids: is missing; must be a list/])
  t.match(faults(`${MINIMAL}outcome: []\n`), [/^mine\.yaml:4: outcome: unknown key; did you mean outcomes\?$/])
  t.match(faults(`${MINIMAL}outcomes:\n  - { contains: x, class: lost }\n`), [/^mine\.yaml:5: outcomes\[0\]\.class: "lost" cannot be used; must be temporary, permanent, auth or in_doubt$/])
  t.match(faults(`${MINIMAL}reply:\n  - { tool: send, arguments: { body: "hello {text}" } }\n`), [/reply\[0\]\.arguments\.body: .*; must be "\{text\}"/])
  t.match(faults(`${MINIMAL}reply:\n  - { tool: send, arguments: { to: "{from}" } }\n`), [/reply\[0\]\.arguments: .*; must give exactly one argument/])
  t.match(faults(`${MINIMAL}wrapper_text: perhaps\n`), [/wrapper_text: "perhaps" cannot be used; must be true or false$/])
  t.match(faults(`${MINIMAL}identity: []\n`), [/identity: .*; must name at least one field$/])
})
