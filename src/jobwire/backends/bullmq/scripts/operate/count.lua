-- KEYS[1] base of the queue. Returns how many jobs wait (in all three places), are delayed, active, completed,
-- failed, and wait for children.

local base = KEYS[1]
local function length(name) return redis.call('LLEN', base .. name) end
local function size(name) return redis.call('ZCARD', base .. name) end
return {
  length('wait') + length('paused') + size('prioritized'),
  size('delayed'), length('active'), size('completed'), size('failed'), size('waiting-children'),
}
