-- Runs that end because something else has to happen first.
--@include finish
--@include put_back

-- The job waits for its children: 0, or why not as let_go says, or -9 if a child has failed that fails it. If none is
-- pending any more it runs again at once.
local function park(base, id, token, now)
  local job = base .. id
  if redis.call('EXISTS', job .. ':unsuccessful') == 1 then return -9 end
  local code = let_go(base, id, token)
  if code ~= 0 then return code end
  if redis.call('EXISTS', job .. ':dependencies') == 0 then
    hand_back(base, id)
    return 0
  end
  redis.call('ZADD', base .. 'waiting-children', now, id)
  redis.call('XADD', base .. 'events', '*', 'event', 'waiting-children', 'jobId', id, 'prev', 'active')
  return 0
end

-- The largest number that the counter of a window can have: whoever has a limit is over it. Returns the ms it lasts.
local function throttle(base, delay)
  redis.call('SET', base .. 'limiter', '9007199254740991', 'PX', delay)
  return tonumber(delay)
end
