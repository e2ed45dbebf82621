-- Ends runs whose job has not finished: puts it back where it waits for the next run.
--@include attempts
--@include gate
--@include marker
--@include delayed
--@include prioritized

local function charge_attempt(job)
  redis.call('HSET', job, 'atm', attempts_after(redis.call('HGET', job, 'atm')))
end

local function priority_of(job)
  return tonumber(redis.call('HGET', job, 'priority') or 0) or 0
end

-- Puts the job into `delayed`, for `delay` ms from now.
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

-- Puts the job behind the other ready jobs (`push` LPUSH) or before them (RPUSH).
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

-- Puts the job before all others, as if it had not been claimed. Wakes a worker also for a job with a priority. BullMQ
-- relies on the marker of the claim there, which another worker may have taken and found nothing.
local function release(base, id)
  local target, blocked = gate(base)
  local priority = priority_of(base .. id)
  if priority > 0 then
    insert_prioritized_first(base, id, priority)
  else
    redis.call('RPUSH', target, id)
  end
  if not blocked then mark_ready(base) end
  announce_waiting(base, id)
end

-- Undoes a claim that no handler has seen: the job is where it was, and fields and event of the claim are gone.
local function undo_claim(base, id, score, event, fields)
  for name, value in pairs(fields) do
    if value == '' then
      redis.call('HDEL', base .. id, name)
    else
      redis.call('HSET', base .. id, name, value)
    end
  end
  redis.call('XDEL', base .. 'events', event)
  local target, blocked = gate(base)
  if score ~= '' then
    redis.call('ZADD', base .. 'prioritized', score, id)
  else
    redis.call('RPUSH', target, id)
  end
  if not blocked then mark_ready(base) end
end
