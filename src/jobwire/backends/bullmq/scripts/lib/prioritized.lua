-- Jobs with a priority: lower numbers first, first in first out within one.
local PRIORITY_STEP = 4294967296

-- A priority may be the text `nan`, which is no place in the order; the job goes before all others then.
local function insert_prioritized(base, id, priority)
  if priority ~= priority then priority = 0 end
  local turn = redis.call('INCR', base .. 'pc')
  redis.call('ZADD', base .. 'prioritized', priority * PRIORITY_STEP + turn % PRIORITY_STEP, id)
end

-- Ahead of all others of the same priority, without a turn of its own.
local function insert_prioritized_first(base, id, priority)
  if priority ~= priority then priority = 0 end
  redis.call('ZADD', base .. 'prioritized', priority * PRIORITY_STEP, id)
end
