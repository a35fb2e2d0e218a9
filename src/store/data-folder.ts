/** The folder of an embedded store: private to its owner, because it holds texts and tokens (DESIGN §7). */
import { chmodSync, mkdirSync, readdirSync } from 'node:fs'

/**
 * Makes the folder, mode 0700. One that exists is closed to others only when it is empty or holds the store already: a folder
 * with other things in it (`lmdb:/tmp`) serves others too, and the store's own files are private anyhow. Throws what Node throws.
 */
export function openPrivateFolder(folder: string, storeFile: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const names = readdirSync(folder)
  if (names.length === 0 || names.includes(storeFile)) chmodSync(folder, 0o700)
}
