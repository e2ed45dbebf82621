-- Take back the jobs of a type that our own workers claimed and lost: the lock ran out, or its owner is dead.
-- KEYS[1] namespace; ARGV: now ms, type, ms in which all workers of the type together look once. Returns the ids.
--@include orphans
local now, kind = tonumber(ARGV[1]), ARGV[2]
if not redis.call('SET', X .. 'recover:' .. kind, now, 'NX', 'PX', ARGV[3]) then return {} end
local found, alive = {}, {}
local records = redis.call('HGETALL', claims_of(kind))
local ids, allowed = {}, {}
for index = 1, #records, 2 do
  local token, _, stalls = records[index + 1]:match('^(.-)|(.-)|(.-)|')
  -- Claims of peers have no token; the leader looks after them.
  if token and token ~= '' then
    ids[#ids + 1] = records[index]
    allowed[#ids] = tonumber(stalls) or 1
  end
end
local locks = strings_at(LOCK, ids)
for index, id in ipairs(ids) do
  if not locks[index] or not is_alive(locks[index], now, alive) then
    if take_back(id, kind, allowed[index], ARGV[1]) then
      found[#found + 1] = id
    else
      redis.call('HDEL', claims_of(kind), id)
    end
  end
end
return found
