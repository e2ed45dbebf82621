-- Recovers jobs of peers that died, for the leader. Peers store no token and may be between two steps, so a job without
-- a lock is recovered when it is found so twice, some time apart. One whose lock belongs to a dead worker is recovered
-- at once. KEYS[1] namespace; ARGV: scheduler id, ms between the two checks. Returns the ids, or {-1} if the caller
-- does not lead.
--@include leader
if not leads() then return { -1 } end
local now, SUSPECTS = tonumber(server_now()), X .. 'suspects'
local found, alive, checked = {}, {}, {}
for _, kind in ipairs(redis.call('SMEMBERS', X .. 'types')) do
  local records = redis.call('HGETALL', claims_of(kind))
  for index = 1, #records, 2 do
    local id = records[index]
    if records[index + 1]:sub(1, 1) == '|' then
      checked[id] = true
      local owner = redis.call('MGET', LOCK .. id)[1]
      local since = redis.call('ZSCORE', SUSPECTS, id)
      local orphan = since and now - since >= tonumber(ARGV[2])
      if owner then orphan = not is_alive(owner, now, alive) end
      if orphan then
        if recover_job(id, kind, 3, now) then found[#found + 1] = id end
        redis.call('HDEL', claims_of(kind), id)
      end
      if orphan or owner then
        redis.call('ZREM', SUSPECTS, id)
      elseif not since then
        redis.call('ZADD', SUSPECTS, now, id)
      end
    end
  end
end
for _, id in ipairs(redis.call('ZRANGE', SUSPECTS, 0, -1)) do
  if not checked[id] then redis.call('ZREM', SUSPECTS, id) end
end
return found
