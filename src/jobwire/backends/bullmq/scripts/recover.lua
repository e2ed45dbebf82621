-- Take back jobs whose worker is gone. A job without a lock at two checks in a row is put back to the front; one that
-- was taken back too often is marked, so that the worker that picks it up next fails it. A scheduler's job never is.
--
-- KEYS[1]  base of the queue
-- ARGV     now ms, ms until the next check (by any worker of the queue), stalls allowed
-- Returns  the ids taken back
--@include active
--@include chunks
--@include gate
--@include marker

local base, now, allowed = KEYS[1], ARGV[1], tonumber(ARGV[3])
if redis.call('EXISTS', base .. 'stalled-check') == 1 then return {} end
local events = base .. 'events'
-- A deletion comes first: once a script has written, a server without memory left lets it finish.
local suspects = redis.call('SMEMBERS', base .. 'stalled')
redis.call('DEL', base .. 'stalled')
redis.call('SET', base .. 'stalled-check', now, 'PX', ARGV[2])
redis.call('XTRIM', events, 'MAXLEN', '~', event_limit(base))

local function is_scheduled(job)
  local readable, opts = pcall(cjson.decode, redis.call('HGET', job, 'opts') or '')
  return readable and type(opts) == 'table' and opts['repeat'] ~= nil
end

local locks, lockless = {}, {}
for index, id in ipairs(suspects) do locks[index] = base .. id .. ':lock' end
local held = get_all(locks)
for index, id in ipairs(suspects) do
  if not held[index] then lockless[#lockless + 1] = id end
end

local recovered = {}
if #lockless > 0 then
  local taken = take_active(base, lockless)
  for _, id in ipairs(lockless) do
    if taken[id] then
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
  call_many('RPUSH', target, recovered)
  if #recovered > 0 and not blocked then mark_ready(base) end
end

local active = redis.call('LRANGE', base .. 'active', 0, -1)
call_many('SADD', base .. 'stalled', active)
return recovered
