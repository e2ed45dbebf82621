-- Recovers jobs whose worker has died. A job without a lock at two checks in a row is put back before all others. One
-- that was recovered too often is marked, so that the worker that claims it next fails it. A scheduler's job is never
-- marked.
--
-- KEYS[1]  base of the queue
-- ARGV     now ms, ms until the next check (by any worker of the queue), stalls allowed
-- Returns  the ids of the recovered jobs
--@include active
--@include chunks
--@include gate
--@include marker

local base, now, allowed = KEYS[1], ARGV[1], tonumber(ARGV[3])
if redis.call('EXISTS', base .. 'stalled-check') == 1 then return {} end
local events = base .. 'events'
-- A deletion comes first: a server without memory left does not stop a script that has written already.
local suspects = redis.call('SMEMBERS', base .. 'stalled')
redis.call('DEL', base .. 'stalled')
redis.call('SET', base .. 'stalled-check', now, 'PX', ARGV[2])
redis.call('XTRIM', events, 'MAXLEN', '~', event_limit(base))

local function is_scheduled(job)
  local readable, opts = pcall(cjson.decode, redis.call('HGET', job, 'opts') or '')
  return readable and type(opts) == 'table' and opts['repeat'] ~= nil
end

-- Nearly always every suspect has its lock: one EXISTS shows that for a thousand of them.
local function without_lock(first, last)
  local locks, found = {}, {}
  for index = first, last do locks[#locks + 1] = base .. suspects[index] .. ':lock' end
  if redis.call('EXISTS', unpack(locks)) == #locks then return found end
  for index, lock in ipairs(locks) do
    if redis.call('EXISTS', lock) == 0 then found[#found + 1] = suspects[first + index - 1] end
  end
  return found
end

local lockless = {}
for first = 1, #suspects, 1000 do
  for _, id in ipairs(without_lock(first, math.min(first + 999, #suspects))) do lockless[#lockless + 1] = id end
end

local recovered = {}
if #lockless > 0 then
  local missing = {}
  for _, id in ipairs(lockless) do missing[id] = true end
  take_active(base, missing, #lockless)
  for _, id in ipairs(lockless) do
    if not missing[id] then
      local job = base .. id
      local stalls = redis.pcall('HINCRBY', job, 'stc', 1)
      if type(stalls) == 'number' and stalls > allowed and not is_scheduled(job) then
        redis.call('HSET', job, 'defa', 'job stalled more than allowable limit')
      end
      redis.call('XADD', events, '*', 'event', 'waiting', 'jobId', id, 'prev', 'active')
      redis.call('XADD', events, '*', 'event', 'stalled', 'jobId', id)
      recovered[#recovered + 1] = id
    end
  end
  local target, blocked = gate(base)
  over_items('RPUSH', target, recovered)
  if #recovered > 0 and not blocked then mark_ready(base) end
end

local active = redis.call('LRANGE', base .. 'active', 0, -1)
over_items('SADD', base .. 'stalled', active)
return recovered
