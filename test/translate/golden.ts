/** Golden pairs: recorded v1 packets and what becomes of them, the same checks for every connector. */
import { readFileSync } from 'node:fs'
import type { Test } from 'tap'
import { loadPresets } from '../../src/config/package-files.js'
import type { ReplyProof } from '../../src/core/record.js'
import { messagePayload } from '../../src/protocol/im-v2.js'
import { decodePacket, isObject, type JsonObject } from '../../src/protocol/packet.js'
import { translatePush, type InboundRules, type TranslatedPush, type TranslationContext } from '../../src/translate/message-push.js'
import { cardTools, replyTarget } from '../../src/translate/reply-target.js'
import { toolOutcome } from '../../src/translate/tool-outcome.js'
import type { Preset } from '../../src/translate/preset.js'
import { recordedBody, recordedCases, recordedPacket, type Connector } from '../legacy/recorded.js'

export interface GoldenPair {
  readonly case: string
  readonly v1: object
  /** The words, where the connector's `text` is no wrapper. */
  readonly words?: readonly string[]
  readonly v2: {
    readonly outcome: 'message' | 'files_not_supported' | 'empty' | 'not_forwarded'
    readonly message_id?: string
    readonly reason?: string
    readonly payload?: object
  }
  /** The call that would answer it, with "{text}" for the part; null where nothing is answered. */
  readonly reply: { readonly tool: string; readonly arguments: object; readonly last_chat_only?: boolean } | null
}

const OUTCOMES: Readonly<Record<TranslatedPush['kind'], GoldenPair['v2']['outcome']>> = {
  message: 'message', files_only: 'files_not_supported', empty: 'empty', not_forwarded: 'not_forwarded',
}
/** Fields of a push, at any depth, that name a person, a place or a secret of the connector, or wrap the words. */
const NEVER_NORTH: ReadonlySet<string> = new Set([
  'text', 'content', 'activation_message', 'reply_ref', 'reply_token', 'context_token', 'session_id', 'account_hint', 'from', 'to', 'sender_id', 'chat_id', 'group_id',
  'from_user_id', 'to_user_id', 'aeskey', 'aes_key', 'encrypt_query_param', 'media_ref', 'download_url', 'tool_id', 'skill_id',
])
/** Later than every recording. */
const NOW = 1_796_076_800_000

export function goldenFile<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../fixtures/golden/${name}.json`, import.meta.url), 'utf8')) as T
}

export const goldenPairs = (connector: Connector): GoldenPair[] => goldenFile<GoldenPair[]>(connector)
export const goldenOutcomes = (connector: Connector): Readonly<Record<string, string>> =>
  goldenFile<Record<Connector, Record<string, string>>>('outcomes')[connector]

export function presetOf(name: string): Preset {
  const preset = loadPresets().get(name)
  if (preset === undefined) throw new Error(`there is no preset ${name}`)
  return preset
}

export function contextOf(connector: Connector, rules: Partial<InboundRules> = {}): TranslationContext {
  return {
    preset: presetOf(connector), rules: { accept: 'all', commands: 'private', senderLine: 'off', ...rules },
    tools: cardTools(recordedBody(connector, 'card')), now: NOW, files: true, freshId: () => 'fresh',
  }
}

/** Every recorded push has a pair, and each pair holds: payload, outcome, the answer's target, and nothing that must stay south. */
export function checkPairs(t: Test, connector: Connector): void {
  const pairs = goldenPairs(connector)
  t.test(`every recorded push of ${connector} has a golden pair`, async (t) => {
    t.strictSame(pairs.map((pair) => pair.case), recordedCases(connector).filter((name) => name.startsWith('push')))
  })
  for (const pair of pairs) {
    t.test(`recorded: ${pair.case}`, async (t) => {
      t.strictSame(decoded(pair.v1).payload, recordedPacket(connector, pair.case).payload, 'the v1 side is the recording')
    })
    checkPair(t, pair, contextOf(connector))
  }
}

export function checkPair(t: Test, pair: GoldenPair, context: TranslationContext): void {
  t.test(`golden: ${pair.case}`, async (t) => {
    const { payload } = decoded(pair.v1)
    const push = translatePush(payload, context)
    t.equal(OUTCOMES[push.kind], pair.v2.outcome)
    if (push.kind === 'message') t.strictSame(northbound(push), pair.v2.payload)
    else t.strictSame({ messageId: push.messageId, ...(push.kind === 'not_forwarded' && { reason: push.reason }) }, { messageId: pair.v2.message_id, ...(pair.v2.reason !== undefined && { reason: pair.v2.reason }) })
    t.strictSame(replyCall(payload, push, context), pair.reply)
    const withSender = translatePush(payload, { ...context, rules: { ...context.rules, senderLine: 'groups' } })
    const secrets = southern(payload).filter((secret) => !pair.words?.includes(secret))
    for (const secret of secrets) t.notOk(JSON.stringify([northbound(push), northbound(withSender)]).includes(secret), `not north: ${secret.slice(0, 40)}`)
  })
}

/** Every recorded tool answer has its class, by the proof that an answer to the push of case `push` asks for. */
export function checkOutcomes(t: Test, connector: Connector, proof: ReplyProof): void {
  const classes = goldenOutcomes(connector)
  t.test(`the outcome class of every recorded tool answer of ${connector}`, async (t) => {
    const answers = recordedCases(connector).filter((name) => name.startsWith('tool'))
    t.strictSame(answers.toSorted(), Object.keys(classes).sort())
    for (const name of answers) {
      const answer = recordedPacket(connector, name)
      const outcome = toolOutcome(answer, proof, presetOf(connector))
      t.equal(outcome.class, classes[name], name)
      t.equal(outcome.reopen, ['connection_not_authenticated', 'connection_not_found'].includes(answer.error?.code ?? ''), `${name}: reopen`)
      t.notMatch(JSON.stringify(outcome), /AAinvented|open-apis|ilink|proxy page|keep-alive/, `${name}: no token, no path, no body`)
    }
  })
}

/** The payload that crosses, its files remembered as `file_1`, `file_2`, …; null where nothing does. */
export function northbound(push: TranslatedPush): JsonObject | null {
  if (push.kind !== 'message') return null
  const files = push.body.files.map((file, index) => ({ ...file, ref: `file_${index + 1}` }))
  return messagePayload({ messageId: push.messageId, text: push.body.text, createdAt: push.createdAt, files })
}

/** The call that would answer a push, in the form of a golden pair. */
function replyCall(payload: JsonObject, push: TranslatedPush, { preset, tools, now }: TranslationContext): object | null {
  if (push.kind !== 'message' && push.kind !== 'files_only') return null
  const target = push.kind === 'message' ? push.target : replyTarget(payload, preset, tools, push.conversation, now)
  return target === null ? null : {
    tool: target.tool, arguments: { [target.textArgument]: '{text}', ...target.arguments }, ...(target.lastChatOnly && { last_chat_only: true }),
  }
}

/** Every text of a push that must stay with the connector. The words stand in `raw_message`, too: these are the user's. */
function southern(payload: JsonObject): string[] {
  const found: string[] = []
  const walk = (value: unknown, key: string, inRaw: boolean): void => {
    if (typeof value === 'string' && value !== '' && NEVER_NORTH.has(key) && !(inRaw && key === 'text')) found.push(value)
    if (Array.isArray(value)) for (const item of value) walk(item, key, inRaw)
    else if (isObject(value)) for (const [name, inner] of Object.entries(value)) walk(inner, name, inRaw || name === 'raw_message')
  }
  walk(payload, '', false)
  return found
}

function decoded(packet: object): { payload: JsonObject } {
  const result = decodePacket(JSON.stringify(packet))
  if (!result.ok) throw new Error('the v1 side is no packet')
  return result.value
}
