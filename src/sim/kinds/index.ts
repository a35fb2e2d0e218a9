/** Every kind of connector that can be simulated, by name. */
import type { ConnectorKind, KindName } from '../connector-kind.js'
import { feishu } from './feishu.js'
import { generic } from './generic.js'
import { telegram } from './telegram.js'
import { wechat } from './wechat.js'

export const KINDS: Readonly<Record<KindName, ConnectorKind>> = { telegram, wechat, feishu, generic }
