/** Run as a process of its own by lease.test.ts: says who it is and stays until its input ends. */
import { ownIdentity } from '../../src/store/process-identity.js'

process.stdout.write(`${JSON.stringify(ownIdentity())}\n`)
process.stdin.resume()
