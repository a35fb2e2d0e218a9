/** A final's text → the calls that send it (DESIGN §5): parts within the platform's limit, cut where a reader would. */
import type { OutboundStep, ReplyTarget } from '../core/record.js'
import type { Preset } from './preset.js'

/** One step per part of the text. Empty when nothing but white space is left. */
export function planReply(text: string, target: ReplyTarget, preset: Preset): OutboundStep[] {
  return splitText(text, preset.textLimit).map((part) => ({
    kind: 'text',
    tool: target.tool,
    arguments: { ...target.arguments, [target.textArgument]: part },
    state: 'waiting',
  }))
}

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
