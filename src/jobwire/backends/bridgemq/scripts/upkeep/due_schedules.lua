-- Lists cron jobs that are due. KEYS[1] namespace; ARGV: most at once. Returns the server's time in ms, then id, score
-- and data of each ('' without data).
--@include lookups
--@include keys
local now = server_now()
local rows = redis.call('ZRANGEBYSCORE', CRON, '-inf', now, 'WITHSCORES', 'LIMIT', 0, ARGV[1])
local reply, ids = { now }, {}
for index = 1, #rows, 2 do ids[#ids + 1] = rows[index] end
local data = strings_at(DATA, ids)
for index, id in ipairs(ids) do
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = id, rows[2 * index], data[index] or ''
end
return reply
