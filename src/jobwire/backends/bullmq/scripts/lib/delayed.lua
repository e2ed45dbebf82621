-- Delayed jobs are ordered by due moment, and first in first out within one millisecond.

-- The score for one more job due at this moment: one above the highest of its 4096 places, the last being shared.
local function delayed_score(base, due)
  local lowest = due * 4096
  local top = lowest + 4095
  local last = redis.call('ZREVRANGEBYSCORE', base .. 'delayed', top, lowest, 'WITHSCORES', 'LIMIT', 0, 1)
  if not last[2] then return lowest end
  return math.min(tonumber(last[2]) + 1, top)
end

-- Put a job into `delayed`; the caller marks afterwards.
local function insert_delayed(base, id, due)
  redis.call('ZADD', base .. 'delayed', delayed_score(base, due), id)
end
