-- Returns the numbers of waiting jobs (in all three containers), of delayed, active, completed and failed ones, and of
-- those that wait for children. KEYS[1] base of the queue.

local base = KEYS[1]
local function length(name) return redis.call('LLEN', base .. name) end
local function size(name) return redis.call('ZCARD', base .. name) end
local function counts()
  return {
    length('wait') + length('paused') + size('prioritized'),
    size('delayed'), length('active'), size('completed'), size('failed'), size('waiting-children'),
  }
end
