-- Tokens in `marker` wake workers that block on it: member 0 says "a job is ready", member 1 when the next is due.

local function mark_ready(base)
  redis.call('ZADD', base .. 'marker', 0, '0')
end

-- The due moment in ms of the first delayed job, or nil. Scores are due * 4096 + sequence.
local function next_due(base)
  local first = redis.call('ZRANGE', base .. 'delayed', 0, 0, 'WITHSCORES')
  if first[2] then return tonumber(first[2]) / 4096 end
  return nil
end

local function mark_delayed(base)
  local due = next_due(base)
  if due then redis.call('ZADD', base .. 'marker', due, '1') end
end
