-- Recovers the jobs of a type that jobwire's workers claimed and lost: the lock has expired, or its owner is dead.
-- KEYS[1] namespace; ARGV: type, the caller's period in ms. Workers of a type share the checks: this one is skipped if
-- another was made within the caller's own period. So the shortest period of all workers holds.
-- Returns the ids.
--@include orphans
local now, kind, looked = tonumber(server_now()), ARGV[1], X .. 'recover:' .. ARGV[1]
local last = tonumber(redis.call('MGET', looked)[1] or '')
if last and now >= last and now - last < tonumber(ARGV[2]) then return {} end
redis.call('SET', looked, now, 'PX', ARGV[2])
local found, alive = {}, {}
local records = redis.call('HGETALL', claims_of(kind))
local ids, allowed = {}, {}
for index = 1, #records, 2 do
  local token, _, stalls = records[index + 1]:match('^(.-)|(.-)|(.-)|')
  -- Claims of peers have no token. The leader recovers them.
  if token and token ~= '' then
    ids[#ids + 1] = records[index]
    allowed[#ids] = tonumber(stalls) or 1
  end
end
local locks = strings_at(LOCK, ids)
for index, id in ipairs(ids) do
  if not locks[index] or not is_alive(locks[index], now, alive) then
    if recover_job(id, kind, allowed[index], now) then
      found[#found + 1] = id
    else
      redis.call('HDEL', claims_of(kind), id)
    end
  end
end
return found
