-- Stores finished jobs as they would be had they run here, each unless its id is taken.
-- KEYS[1] namespace; ARGV: now ms, type, then per job: id, place (`completed` or `dead`), time it finished in ms, data,
-- result, progress or '', number of log lines, the lines.
-- Returns how many were new. The completed stay for a day from now, as if they had just completed: the protocol keeps
-- them no longer, and its index forgets what is older. Dead jobs stay until they are removed.
--@include remove

local now, kind = ARGV[1], ARGV[2]
local at, new = 3, 0

local function put(id, place, finished, data, result, progress, lines)
  redis.call('SET', DATA .. id, data)
  redis.call('SET', STATUS .. id, place)
  redis.call('SET', RESULT .. id, result, 'EX', DAY)
  if progress ~= '' then redis.call('SET', PROGRESS .. id, progress) end
  over_items('RPUSH', LOGS .. id, lines)
  if place == 'completed' then
    for _, prefix in ipairs({ DATA, STATUS, PROGRESS, LOGS }) do redis.call('EXPIRE', prefix .. id, DAY) end
    redis.call('ZADD', X .. 'completed:' .. kind, now, id)
  else
    redis.call('LPUSH', DEADLETTER, id)
    redis.call('ZADD', X .. 'dead:' .. kind, finished, id)
  end
end

while at <= #ARGV do
  local id, lines, count = ARGV[at], {}, tonumber(ARGV[at + 6])
  for number = 1, count do lines[number] = ARGV[at + 6 + number] end
  if redis.call('EXISTS', DATA .. id) == 0 then
    put(id, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], lines)
    new = new + 1
  end
  at = at + 7 + count
end
redis.call('SADD', X .. 'types', kind)
return new
