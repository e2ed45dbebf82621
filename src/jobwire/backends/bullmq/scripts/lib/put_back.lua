-- Runs that end without ending the job: it waits for another one.
--@include gate
--@include marker
--@include delayed
--@include prioritized

local function charge_attempt(job)
  redis.call('HSET', job, 'atm', (tonumber(redis.call('HGET', job, 'atm') or 0) or 0) + 1)
end

local function priority_of(job)
  return tonumber(redis.call('HGET', job, 'priority') or 0) or 0
end

-- To `delayed`, for `delay` ms from now.
local function postpone(base, id, delay, now)
  local due = tonumber(now) + tonumber(delay)
  redis.call('HSET', base .. id, 'delay', delay)
  insert_delayed(base, id, due)
  redis.call('XADD', base .. 'events', '*', 'event', 'delayed', 'jobId', id, 'delay', due)
  mark_delayed(base)
end

local function announce_waiting(base, id)
  redis.call('XADD', base .. 'events', '*', 'event', 'waiting', 'jobId', id, 'prev', 'active')
end

-- To the end of the line (`push` LPUSH) or to its front (RPUSH).
local function wait_again(base, id, push)
  local target, blocked = gate(base)
  local priority = priority_of(base .. id)
  if priority == 0 then
    redis.call(push, target, id)
  else
    insert_prioritized(base, id, priority)
  end
  if not blocked then mark_ready(base) end
  announce_waiting(base, id)
end

-- To the very front, as if it had not been picked up. A job with a priority wakes nobody.
local function hand_back(base, id)
  local target, blocked = gate(base)
  local priority = priority_of(base .. id)
  if priority > 0 then
    insert_prioritized_first(base, id, priority)
  else
    redis.call('RPUSH', target, id)
    if not blocked then mark_ready(base) end
  end
  announce_waiting(base, id)
end
