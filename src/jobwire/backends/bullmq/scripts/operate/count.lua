-- Counts the jobs of a queue by state.
-- KEYS[1] base of the queue. Returns the numbers of waiting (in all three containers), delayed, active, completed and
-- failed jobs, and of those that wait for children.

local base = KEYS[1]
local function length(name) return redis.call('LLEN', base .. name) end
local function size(name) return redis.call('ZCARD', base .. name) end
return {
  length('wait') + length('paused') + size('prioritized'),
  size('delayed'), length('active'), size('completed'), size('failed'), size('waiting-children'),
}
