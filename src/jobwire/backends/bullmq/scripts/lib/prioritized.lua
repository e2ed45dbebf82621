-- Jobs with a priority: lower numbers first, first in first out within one.
local PRIORITY_STEP = 4294967296

-- A stored priority may be the text `nan`, which can't be ordered: that job goes before all others.
local function insert_prioritized(base, id, priority)
  if priority ~= priority then priority = 0 end
  local turn = redis.call('INCR', base .. 'pc')
  redis.call('ZADD', base .. 'prioritized', priority * PRIORITY_STEP + turn % PRIORITY_STEP, id)
end

-- Puts a job before all others of the same priority. Uses no number of the counter.
local function insert_prioritized_first(base, id, priority)
  if priority ~= priority then priority = 0 end
  redis.call('ZADD', base .. 'prioritized', priority * PRIORITY_STEP, id)
end
