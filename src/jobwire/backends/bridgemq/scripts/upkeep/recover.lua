-- Take back the jobs of a type that our own workers claimed and lost: the lock ran out, or its owner is dead.
-- KEYS[1] namespace; ARGV: type, the caller's period in ms. Workers of a type share the looks: none is made if another
-- one looked within the caller's own period, so who asks for a short period has it whatever the others ask for.
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
  -- Claims of peers have no token; the leader looks after them.
  if token and token ~= '' then
    ids[#ids + 1] = records[index]
    allowed[#ids] = tonumber(stalls) or 1
  end
end
local locks = strings_at(LOCK, ids)
for index, id in ipairs(ids) do
  if not locks[index] or not is_alive(locks[index], now, alive) then
    if take_back(id, kind, allowed[index], now) then
      found[#found + 1] = id
    else
      redis.call('HDEL', claims_of(kind), id)
    end
  end
end
return found
