-- Deletes a scheduler and the delayed job that it made last. If that job is ready or running already, it stays.
-- KEYS[1] base of the queue; ARGV[1] scheduler id. Returns 1 done, 0 unknown.
--@include schedule

local base, scheduler = KEYS[1], ARGV[1]

local function delayed_job(at)
  if not is_version_4(scheduler) then return scheduled_id(scheduler, at) end
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', base .. 'delayed', at * 4096, at * 4096 + 4095)) do
    if fields_of(base .. id, 'rjk')[1] == scheduler then return id end
  end
  return ''
end

local at = tonumber(redis.call('ZSCORE', base .. 'repeat', scheduler))
if at then
  local id = delayed_job(at)
  if redis.call('ZREM', base .. 'delayed', id) == 1 then
    delete_job(base, id)
    add_event(base, 'removed', 'jobId', id, 'prev', 'delayed')
  end
end
local known = redis.call('ZREM', base .. 'repeat', scheduler)
redis.call('DEL', base .. 'repeat:' .. scheduler)
return known
