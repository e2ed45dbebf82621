-- Reads figures of a queue.
-- KEYS[1] base of the queue. Returns the numbers of `count.lua`, 1 if the queue is paused, and the time at which the
-- oldest waiting job was added, or '': that of a job at one of the ends of the containers of waiting jobs.

--@include count

local oldest
local function see(id)
  local at = id and tonumber(redis.call('HGET', base .. id, 'timestamp') or nil)
  if at and (not oldest or at < oldest) then oldest = at end
end
for _, name in ipairs({ 'wait', 'paused' }) do
  see(redis.call('LINDEX', base .. name, -1))
  see(redis.call('LINDEX', base .. name, 0))
end
see(redis.call('ZRANGE', base .. 'prioritized', 0, 0)[1])
see(redis.call('ZRANGE', base .. 'prioritized', -1, -1)[1])

local figures = counts()
figures[#figures + 1] = redis.call('HEXISTS', base .. 'meta', 'paused')
figures[#figures + 1] = oldest and string.format('%.0f', oldest) or ''
return figures
