/** Which hosts files may be fetched from (docs/security.md): the connector itself, and listed ones outside private networks. */
import { lookup as resolve, type LookupAddress, type LookupOptions } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'

const PRIVATE = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8], ['10.0.0.0', 8], ['100.64.0.0', 10], ['127.0.0.0', 8], ['169.254.0.0', 16], ['172.16.0.0', 12], ['192.0.0.0', 24], ['192.168.0.0', 16],
  ['198.18.0.0', 15], ['224.0.0.0', 3],
] as const) PRIVATE.addSubnet(network, prefix, 'ipv4')
for (const [network, prefix] of [['::', 127], ['fc00::', 7], ['fe80::', 10], ['ff00::', 8], ['64:ff9b::', 96]] as const) PRIVATE.addSubnet(network, prefix, 'ipv6')

export interface FileHosts {
  /** `files.allowed_hosts`: host names, compared without regard to case. */
  readonly allowed: readonly string[]
  /** `files.allow_private`. */
  readonly allowPrivate: boolean
}

/** Whether an address belongs to a private, local or otherwise special network. */
export function isPrivateAddress(address: string): boolean {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address
  const family = isIP(mapped)
  return family === 0 || PRIVATE.check(mapped, family === 6 ? 'ipv6' : 'ipv4')
}

/** Where a file is, and whether it is the connector's own; a reason when it must not be fetched. */
export function fileLocation(given: string, baseUrl: string, hosts: FileHosts): { readonly url: URL; readonly own: boolean } | { readonly refused: 'file_url_invalid' | 'file_host_not_allowed' } {
  const base = new URL(baseUrl)
  const relative = given.startsWith('/') && !given.startsWith('//')
  const prefix = base.pathname.replace(/\/+$/, '')
  // A relative URL names a path under the Base URL, whatever prefix that has.
  const text = relative ? `${base.origin}${prefix}${given}` : given
  if (!URL.canParse(text)) return { refused: 'file_url_invalid' }
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return { refused: 'file_url_invalid' }
  if (url.username !== '' || url.password !== '') return { refused: 'file_url_invalid' }
  // Beside the prefix is somebody else's, though it be the same host: the key must not go there.
  if (url.origin === base.origin) return url.pathname.startsWith(`${prefix}/`) ? { url, own: true } : { refused: 'file_url_invalid' }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const listed = hosts.allowed.some((allowed) => allowed.toLowerCase() === host.toLowerCase())
  const local = isIP(host) !== 0 && isPrivateAddress(host) && !hosts.allowPrivate
  return listed && !local ? { url, own: false } : { refused: 'file_host_not_allowed' }
}

/** A DNS lookup that answers no private address: checked after the name is resolved, so no name can point inside. */
export function publicLookup(hosts: FileHosts): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...(options as LookupOptions), all: true }, (error, found) => {
      if (error !== null) return callback(error, '', 0)
      const addresses: readonly LookupAddress[] = hosts.allowPrivate ? found : found.filter(({ address }) => !isPrivateAddress(address))
      const [first] = addresses
      if (first === undefined) return callback(Object.assign(new Error('the host is in a private network'), { code: 'EPRIVATE' }), '', 0)
      if ((options as LookupOptions).all === true) callback(null, addresses as LookupAddress[])
      else callback(null, first.address, first.family)
    })
  }
}
