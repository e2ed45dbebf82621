-- Recovers jobs whose worker has died. A worker is alive while it has a heartbeat, or if it registered less than 30 s
-- ago (a peer registers before its first heartbeat).
--@include finish
local FRESH = 30000

local function is_alive(server, now, known)
  if known[server] == nil then
    local alive = redis.call('EXISTS', HEARTBEAT .. server) == 1
    if not alive then
      local fine, about = pcall(cjson.decode, redis.call('MGET', base .. 'workers:' .. server)[1] or '')
      local seen = fine and type(about) == 'table' and tonumber(about.lastSeen)
      alive = seen and now - seen < FRESH or false
    end
    known[server] = alive
  end
  return known[server]
end

-- Puts a job back before all others, or into the dead letter list if it stalled more often than allowed. A stall is not
-- a failure of the handler, so no attempt is charged. Returns false if the run was ended in the meantime.
local function recover_job(id, kind, allowed, now)
  if redis.call('SREM', ACTIVE, id) == 0 then return false end
  redis.call('DEL', LOCK .. id)
  redis.call('HDEL', claims_of(kind), id)
  count_down(kind, 1)
  local route, problem = route_of(redis.call('MGET', DATA .. id)[1], id)
  if not route then
    if problem then poison(id, problem, now) end
    return false
  end
  local stalls = redis.call('HINCRBY', X .. 'stalls', id, 1)
  if stalls > allowed then
    redis.call('HDEL', X .. 'stalls', id)
    if redis.call('ZSCORE', CRON, id) then
      redis.call('SET', STATUS .. id, 'cron')
    else
      local words = 'job stalled more than ' .. allowed .. ' times: its workers died or lost it'
      to_dead_letter(id, kind, failure('JobStalled', words, now), now)
    end
  else
    adopt_ends(now)
    wait_again(id, route, true)
    wake(kind)
  end
  return true
end
