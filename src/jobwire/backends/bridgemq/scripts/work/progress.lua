-- Stores a job's progress, or appends a line to its log. KEYS[1] namespace; ARGV: type, id, `progress` and value (an
-- object that is not empty), or `log`, line, lines to keep. Returns 1 done, 0 no such job.
--@include keys
local id = ARGV[2]
if redis.call('EXISTS', DATA .. id) == 0 then return 0 end
redis.call('SADD', WITH_OUTPUT, id)
if ARGV[3] == 'progress' then
  redis.call('SET', PROGRESS .. id, ARGV[4]:sub(1, -2) .. ',"updatedAt":' .. server_now() .. '}')
else
  redis.call('RPUSH', LOGS .. id, ARGV[4])
  if ARGV[5] ~= '0' then redis.call('LTRIM', LOGS .. id, -ARGV[5], -1) end
end
return 1
