-- Counters that others write too. An error here would end the script with jobs taken and not yet held, so one that is
-- no number, or below zero, starts at zero.

local function counted(key)
  local value = redis.call('MGET', key)[1]
  return value and value:find('^%d+$') and tonumber(value) or 0
end

local function count(key, by)
  local value = redis.pcall('INCRBY', key, by)
  if type(value) == 'number' and (by < 0 or value >= by) then return value end
  redis.call('SET', key, math.max(by, 0))
  return by
end

-- A counter that lasts for a window. One without an end would hold its limit for ever, so it is given one: that of a
-- window which begins now.
local function window_left(key, window)
  local left = redis.call('PTTL', key)
  if left == -1 then
    redis.call('PEXPIRE', key, window)
    left = window
  end
  return math.max(left, 1)
end

local function count_window(key, by, window)
  count(key, by)
  if redis.call('PTTL', key) == -1 then redis.call('PEXPIRE', key, window) end
end
