-- Delayed jobs whose time has come become runnable, at most 1000 at a time.
--@include chunks
--@include marker
--@include prioritized

-- Needs the answer of gate(base). A job whose hash is of a foreign type is passed on; picking it up weeds it out. A score
-- below zero, which BullMQ's clients never write and never look at, is a moment long past.
local function promote_due(base, target, blocked, now)
  local due = redis.call('ZRANGEBYSCORE', base .. 'delayed', '-inf', (tonumber(now) + 1) * 4096 - 1, 'LIMIT', 0, 1000)
  if #due == 0 then return 0 end
  call_many('ZREM', base .. 'delayed', due)
  local plain = {}
  for _, id in ipairs(due) do
    local priority = redis.pcall('HGET', base .. id, 'priority')
    priority = type(priority) == 'string' and tonumber(priority) or 0
    if priority == 0 then
      plain[#plain + 1] = id
    else
      insert_prioritized(base, id, priority)
    end
    redis.call('XADD', base .. 'events', '*', 'event', 'waiting', 'jobId', id, 'prev', 'delayed')
    redis.pcall('HSET', base .. id, 'delay', 0)
  end
  call_many('LPUSH', target, plain)
  if not blocked then mark_ready(base) end
  return #due
end
