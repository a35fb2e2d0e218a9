/**
 * What Redis does in one piece, as Lua. Every write of a route checks its fence first, on the server, so that an instance that
 * was paused or cut off can change nothing any more (DESIGN §7). Leases go by the server's clock alone.
 */
import { createHash } from 'node:crypto'

export interface Script {
  readonly text: string
  readonly sha: string
}

/** How a script says that another instance owns the route. */
export const FENCE_LOST = 'FENCELOST'

const NOW = `local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)`

/** KEYS lease, then for each kind its records and their order; ARGV fence, then kind (from 1), op, key, text for each change. */
export const COMMIT = script(`
if redis.call('HGET', KEYS[1], 'number') ~= ARGV[1] then return redis.error_reply('${FENCE_LOST} another instance owns the route') end
for i = 2, #ARGV, 4 do
  local records, order = KEYS[2 * ARGV[i]], KEYS[2 * ARGV[i] + 1]
  if ARGV[i + 1] == 'put' then
    redis.call('HSET', records, ARGV[i + 2], ARGV[i + 3])
    redis.call('ZADD', order, 0, ARGV[i + 2])
  else
    redis.call('HDEL', records, ARGV[i + 2])
    redis.call('ZREM', order, ARGV[i + 2])
  end
end
return 1`)

/**
 * KEYS lease; ARGV owner, ms, process, number and end of a lease that may be taken from another owner ("" = whatever its end).
 * Answers the number, or 0, how long the lease runs, its number, its end and its process.
 */
export const ACQUIRE = script(`
${NOW}
local held = redis.call('HMGET', KEYS[1], 'number', 'owner', 'expiresAt', 'process')
local free = not held[1] or held[2] == ARGV[1] or held[3] == '0'
if not free and (held[1] ~= ARGV[4] or (ARGV[5] ~= '' and held[3] ~= ARGV[5])) then
  return { 0, tonumber(held[3]) - now, held[1], held[3], held[4] }
end
local number = (tonumber(held[1]) or 0) + 1
redis.call('HSET', KEYS[1], 'number', number, 'owner', ARGV[1], 'expiresAt', now + ARGV[2], 'process', ARGV[3])
return { number, 0 }`)

/** KEYS lease; ARGV fence, ms; 0 ms = released. */
export const RENEW = script(`
if redis.call('HGET', KEYS[1], 'number') ~= ARGV[1] then return redis.error_reply('${FENCE_LOST} another instance owns the route') end
${NOW}
redis.call('HSET', KEYS[1], 'expiresAt', ARGV[2] == '0' and 0 or now + ARGV[2])
return 1`)

/** KEYS records, order; ARGV from, to, at most. Answers key, text, key, text, … in byte order. */
export const LIST = script(`
local found = {}
for _, key in ipairs(redis.call('ZRANGEBYLEX', KEYS[2], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])) do
  found[#found + 1] = key
  found[#found + 1] = redis.call('HGET', KEYS[1], key)
end
return found`)

export const SCRIPTS: readonly Script[] = [COMMIT, ACQUIRE, RENEW, LIST]

function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}
