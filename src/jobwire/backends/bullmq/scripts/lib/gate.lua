-- The list that ready jobs go to, and whether a worker may be woken for them.

-- Takes meta's `paused` and `concurrency`. Returns the list, and true if the queue is paused or at its global
-- concurrency. While a queue is paused the waiting list is called `paused` (5.x).
local function gate_of(base, paused, concurrency)
  local blocked = paused ~= false
  if not blocked and concurrency then
    local limit = tonumber(concurrency)
    blocked = limit ~= nil and redis.call('LLEN', base .. 'active') >= limit
  end
  return base .. (paused and 'paused' or 'wait'), blocked
end

local function gate(base)
  local meta = redis.call('HMGET', base .. 'meta', 'paused', 'concurrency')
  return gate_of(base, meta[1], meta[2])
end

-- Returns how many events a queue keeps. Stores the default if the queue has no number yet. What another client has
-- stored may not be a number.
local function event_limit(base, stored)
  stored = stored or redis.call('HGET', base .. 'meta', 'opts.maxLenEvents')
  if stored then return #stored < 16 and string.match(stored, '^%d+$') or 10000 end
  redis.call('HSET', base .. 'meta', 'opts.maxLenEvents', 10000)
  return 10000
end
