/**
 * A socket's binary address as text. IPv4 also when it comes mapped into IPv6, so that one client has one address for the
 * limits.
 */
export function addressText(binary: ArrayBuffer): string {
  const bytes = [...new Uint8Array(binary)]
  const isMapped = bytes.length === 16 && bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff
  if (bytes.length === 4 || isMapped) return bytes.slice(-4).join('.')
  const groups = Array.from({ length: 8 }, (_, i) => (((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0)).toString(16))
  return groups.join(':')
}
