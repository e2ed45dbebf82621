-- Counters that others write too. An error here would end the script with jobs taken and not yet held, so one that is
-- no number starts anew.
local function count(key, by)
  local value = redis.pcall('INCRBY', key, by)
  if type(value) == 'number' then return value end
  redis.call('SET', key, math.max(by, 0))
  return by
end
