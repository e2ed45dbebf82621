-- Delayed jobs are ordered by the time when they are due, and first in first out within one millisecond.

-- Returns the score for one more job that is due at this time. Each millisecond has 4096 scores: the next free one is
-- taken, and when all are used, the last one is shared.
local function delayed_score(base, due)
  local lowest = due * 4096
  local top = lowest + 4095
  local last = redis.call('ZREVRANGEBYSCORE', base .. 'delayed', top, lowest, 'WITHSCORES', 'LIMIT', 0, 1)
  if not last[2] then return lowest end
  return math.min(tonumber(last[2]) + 1, top)
end

-- Puts a job into `delayed`. The caller sets the marker afterwards.
local function insert_delayed(base, id, due)
  redis.call('ZADD', base .. 'delayed', delayed_score(base, due), id)
end
