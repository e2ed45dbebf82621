-- Members of `marker` wake workers that block on it. Member 0 means that a job is ready. The score of member 1 is the
-- time when the next delayed job is due.

local function mark_ready(base)
  redis.call('ZADD', base .. 'marker', 0, '0')
end

-- JavaScript's last date is 8.64e15 ms: a job with a later one is never due.
local LAST_MOMENT = 8.64e15

-- Returns the time in ms when the first delayed job is due, or nil. Scores are due * 4096 + sequence.
local function next_due(base)
  local first = redis.call('ZRANGE', base .. 'delayed', 0, 0, 'WITHSCORES')
  local due = first[2] and tonumber(first[2]) / 4096
  if due and due <= LAST_MOMENT then return math.max(due, 0) end
  return nil
end

local function mark_delayed(base)
  local due = next_due(base)
  if due then redis.call('ZADD', base .. 'marker', due, '1') end
end
