-- Tokens in `marker` wake workers that block on it: member 0 says "a job is ready", member 1 when the next is due.

local function mark_ready(base)
  redis.call('ZADD', base .. 'marker', 0, '0')
end

-- Beyond this no moment can be told (JavaScript's last one is 8.64e15 ms): a job with such a score is never due.
local LAST_MOMENT = 8.64e15

-- The due moment in ms of the first delayed job, or nil. Scores are due * 4096 + sequence.
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
