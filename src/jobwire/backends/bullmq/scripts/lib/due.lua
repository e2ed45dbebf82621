-- Makes delayed jobs ready that are due, at most 1000 at a time.
--@include chunks
--@include marker
--@include prioritized

-- Needs the results of gate(base). A job whose key is not a hash is moved too: the claim discards it. A score below
-- zero, which BullMQ's clients never write and never read, counts as long past.
local function make_due_ready(base, target, blocked, now)
  local due = redis.call('ZRANGEBYSCORE', base .. 'delayed', '-inf', (tonumber(now) + 1) * 4096 - 1, 'LIMIT', 0, 1000)
  if #due == 0 then return 0 end
  over_items('ZREM', base .. 'delayed', due)
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
  over_items('LPUSH', target, plain)
  if not blocked then mark_ready(base) end
  return #due
end
