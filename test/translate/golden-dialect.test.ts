/** Golden pairs written from the protocol texts: pushes of the 3.0 dialect, and what a final becomes on every tool. */
import t from 'tap'
import type { FinalFile } from '../../src/core/event.js'
import type { JsonObject } from '../../src/protocol/packet.js'
import { translatePush } from '../../src/translate/message-push.js'
import { planReply } from '../../src/translate/reply-plan.js'
import { cardTools, replyTarget } from '../../src/translate/reply-target.js'
import { recordedPacket, type Connector } from '../legacy/recorded.js'
import { checkPair, contextOf, goldenFile, presetOf, type GoldenPair } from './golden.js'

/** A Card whose tools require these arguments, besides the channel. */
const card = (tools: Readonly<Record<string, readonly string[]>>): JsonObject => ({
  tools: Object.entries(tools).map(([tool_id, names]) => ({ tool_id, input_schema: { type: 'object', required: ['connector_channel_id', ...names] } })),
})

const EXAMPLE = { example_message_send: ['text'], example_message_reply: ['reply_ref', 'text'] }
const pairs = goldenFile<(GoldenPair & { readonly v1: { readonly payload: JsonObject } })[]>('dialect-3.0')
for (const pair of pairs) checkPair(t, pair, { ...contextOf('telegram'), preset: presetOf('generic'), tools: cardTools(card(EXAMPLE)) })

interface GoldenCalls {
  readonly finals: readonly {
    readonly case: string
    readonly connector: Connector | 'generic'
    /** The recorded push that is answered; for `generic` one of the pairs above. */
    readonly push: string
    readonly tools?: Readonly<Record<string, readonly string[]>>
    readonly final: { readonly text: string; readonly files: readonly { readonly type: string; readonly ref: string; readonly name: string; readonly mime: string; readonly size: number }[] }
    /** "{uploaded}" stands for the connector's reference of the uploaded file. */
    readonly calls?: readonly object[]
    readonly refused?: string
  }[]
  readonly typing: readonly { readonly connector: Connector; readonly push: string; readonly tool: string | null; readonly flag?: string; readonly arguments?: object }[]
}

const golden = goldenFile<GoldenCalls>('calls')
const payloadOf = (connector: Connector | 'generic', name: string): JsonObject =>
  connector === 'generic' ? (pairs.find((pair) => pair.case === name)?.v1.payload ?? {}) : recordedPacket(connector, name).payload

for (const one of golden.finals) {
  t.test(`golden calls: ${one.case}`, async (t) => {
    const tools = one.connector === 'generic' ? cardTools(card(one.tools ?? {})) : contextOf(one.connector).tools
    const target = replyTarget(payloadOf(one.connector, one.push), presetOf(one.connector), tools, null, 0)
    if (target === null) throw new Error('nobody to answer')
    const files = one.final.files.map(({ ref, name, mime, size }): FinalFile => ({ ref, stored: { byteSize: size, mimeType: mime, filename: name } }))
    const plan = planReply(one.final.text, files, target, presetOf(one.connector), (ref) => `https://gateway.example/files/refs/${ref}`)
    t.equal(plan.ok ? undefined : plan.code, one.refused)
    if (!plan.ok) return
    t.strictSame(plan.steps.map(({ tool, arguments: args, file }) => ({
      tool, ...(file !== undefined && { upload: { ref: file.ref, fields: file.uploadFields } }), arguments: file === undefined ? args : { [file.argument]: '{uploaded}', ...args },
    })), one.calls)
  })
}

for (const { connector, push, tool, flag, arguments: args } of golden.typing) {
  t.test(`golden calls: "is typing" on ${connector}`, async (t) => {
    const translated = translatePush(payloadOf(connector, push), contextOf(connector))
    const typing = translated.kind === 'message' ? translated.target?.typing : undefined
    t.strictSame(typing, tool === null ? null : { tool, arguments: args, flag })
  })
}
