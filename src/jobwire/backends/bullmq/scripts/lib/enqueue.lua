-- Puts one job into a container of ready or delayed jobs, and wakes a worker unless the queue is blocked.
--@include gate
--@include marker
--@include prioritized
--@include delayed

local function push_to_list(base, id, next_to_run)
  local list, blocked = gate(base)
  redis.call(next_to_run and 'RPUSH' or 'LPUSH', list, id)
  if not blocked then mark_ready(base) end
end

local function push_prioritized(base, id, priority)
  insert_prioritized(base, id, priority)
  local _, blocked = gate(base)
  if not blocked then mark_ready(base) end
end

local function push_delayed(base, id, due)
  insert_delayed(base, id, due)
  mark_delayed(base)
end
