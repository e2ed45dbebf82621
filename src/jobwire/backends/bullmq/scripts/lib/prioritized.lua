-- Jobs with a priority: lower numbers first, first in first out within one.
local PRIORITY_STEP = 4294967296

local function insert_prioritized(base, id, priority)
  local turn = redis.call('INCR', base .. 'pc')
  redis.call('ZADD', base .. 'prioritized', priority * PRIORITY_STEP + turn % PRIORITY_STEP, id)
end

-- Ahead of all others of the same priority, without a turn of its own.
local function insert_prioritized_first(base, id, priority)
  redis.call('ZADD', base .. 'prioritized', priority * PRIORITY_STEP, id)
end
