/** A final's text and files → the calls that send it (DESIGN §5): text in parts within the platform's limit, then file by file. */
import type { FinalFile } from '../core/event.js'
import type { OutboundRecord, OutboundStep, ReplyAddress } from '../core/record.js'
import type { Preset } from './preset.js'

export type FileLink = ((ref: string) => string) | null
export type ReplyPlan =
  | { readonly ok: true; readonly steps: readonly OutboundStep[] }
  | { readonly ok: false; readonly code: 'files_not_supported' | 'file_not_available' | 'file_refused' }

/**
 * One step per part of the text, then one per file. All files are checked before anything is sent: their bytes are there, and
 * the connector takes their size and content, or a link is sent instead. No steps when nothing but white space is left.
 */
export function planReply(text: string, files: readonly FinalFile[], target: ReplyAddress, preset: Preset, link: FileLink): ReplyPlan {
  const steps: OutboundStep[] = splitText(text, preset.textLimit).map((part) => textStep(part, target))
  for (const [index, file] of files.entries()) {
    if (file.stored === null) return { ok: false, code: 'file_not_available' }
    const linked = preset.refusedFile === 'link' && link !== null
    if (target.file !== null && isTaken(file.stored, preset)) steps.push(fileStep(file.ref, index, target.file))
    else if (linked) steps.push(textStep(linkText(file.stored.filename, link(file.ref)), target))
    else return { ok: false, code: target.file === null ? 'files_not_supported' : 'file_refused' }
  }
  return { ok: true, steps }
}

/** The plan after the connector has refused a file at its upload: a link instead; null where the preset rejects it. */
export function linkInstead(record: OutboundRecord, at: number, preset: Preset, link: FileLink): OutboundRecord | null {
  const ref = record.steps[at]?.file?.ref
  const { target } = record
  if (preset.refusedFile !== 'link' || link === null || ref === undefined || target === null) return null
  return { ...record, steps: record.steps.map((step, index) => (index === at ? textStep(link(ref), target) : step)) }
}

/** Size and content as the preset says; a kind such as "image/" stands for all of it. */
function isTaken({ byteSize, mimeType }: NonNullable<FinalFile['stored']>, { fileLimit }: Preset): boolean {
  if (byteSize > fileLimit.maxBytes) return false
  return fileLimit.content.length === 0 || fileLimit.content.some((kind) => (kind.endsWith('/') ? mimeType.startsWith(kind) : mimeType === kind))
}

function textStep(part: string, target: ReplyAddress): OutboundStep {
  return { kind: 'text', tool: target.tool, arguments: { ...target.arguments, [target.textArgument]: part }, state: 'waiting' }
}

function fileStep(ref: string, index: number, file: NonNullable<ReplyAddress['file']>): OutboundStep {
  return { kind: 'file', tool: file.tool, arguments: { ...file.arguments }, state: 'waiting', file: { ref, argument: file.refArgument, uploadFields: file.uploadFields, index } }
}

const linkText = (filename: string, url: string): string => `${filename}: ${url}`

/**
 * Cuts a text into parts of at most `max` units: at the last paragraph end that fits, else the last sentence end, else the
 * last white space, else between code points. White space at a cut is dropped; no part is white space alone.
 */
export function splitText(text: string, limit: Preset['textLimit']): string[] {
  const parts: string[] = []
  let rest = text.toWellFormed().trim()
  while (rest !== '') {
    const fits = prefixWithin(rest, limit)
    const cut = fits === rest.length ? rest.length : cutBefore(rest, fits)
    parts.push(rest.slice(0, cut).trimEnd())
    rest = rest.slice(cut).trimStart()
  }
  return parts
}

/** Length in UTF-16 units of the longest prefix of whole code points within the limit; at least one code point. */
function prefixWithin(text: string, { max, unit }: Preset['textLimit']): number {
  let used = 0
  let end = 0
  for (const point of text) {
    used += unit === 'utf16' ? point.length : unit === 'bytes' ? Buffer.byteLength(point) : 1
    if (used > max && end > 0) return end
    end += point.length
  }
  return text.length
}

const CUTS: readonly RegExp[] = [/\n\s*\n/gu, /\n/gu, /[.!?…。！？]["'”’)]*(?=\s)|[。！？]/gu, /\s/gu]

/** The best place to cut within the first `fits` units: never in the first half unless nothing else is there. */
function cutBefore(text: string, fits: number): number {
  const window = text.slice(0, fits + 1)
  for (const pattern of CUTS) {
    let best = 0
    for (const match of window.matchAll(pattern)) {
      const end = match.index + match[0].length
      if (match.index > 0 && match[0].trim() === '' ? match.index <= fits : end <= fits) best = match[0].trim() === '' ? match.index : end
    }
    if (best > 0) return best
  }
  return fits
}
