-- Counts finished jobs per minute, for queues whose workers have metrics on. `kind` is completed or failed, `size` the
-- number of minutes kept.
--@include chunks

local function count_finished(base, kind, number, now, size)
  local key = base .. 'metrics:' .. kind
  local count = redis.call('HINCRBY', key, 'count', number) - number
  local known = redis.call('HMGET', key, 'prevTS', 'prevCount')
  if not known[1] then
    redis.call('HSET', key, 'prevTS', now, 'prevCount', 0)
    return
  end
  size = tonumber(size)
  local before = tonumber(known[1]) or tonumber(now)
  local minutes = math.min(math.floor(tonumber(now) / 60000) - math.floor(before / 60000), size)
  if minutes <= 0 then return end
  local points = { count - (tonumber(known[2]) or 0) }
  for index = 2, minutes do points[index] = 0 end
  over_items('LPUSH', key .. ':data', points)
  redis.call('LTRIM', key .. ':data', 0, size - 1)
  redis.call('HSET', key, 'prevCount', count, 'prevTS', now)
end
