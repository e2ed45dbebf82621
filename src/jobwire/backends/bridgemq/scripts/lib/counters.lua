-- Counters that peers write too. An error here would end the script after jobs were taken and before their claims are
-- stored, so a counter that is not a number, or below zero, starts at zero.

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

-- Returns the ms that are left of a counter's window. A counter without an end would never free its limit, so it gets
-- the end of a window that begins now.
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
