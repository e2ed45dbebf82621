-- Writes or removes a worker's entry in the registry. Workers may share a server id, so each has a session of its own
-- beside the entry. The entry is removed with the last session. KEYS[1] namespace; ARGV: `beat` or `leave`, server id,
-- type, session (all of the same length), then for `beat`: ms that a session lasts without a heartbeat, name, metadata
-- as JSON without its closing brace, so that the time can be appended.
--@include keys
local action, server, kind, session = ARGV[1], ARGV[2], ARGV[3], ARGV[4] .. ':' .. ARGV[3]
local sessions, handlers, now = X .. 'sessions:' .. server, X .. 'handlers:' .. kind, server_now()
if action == 'beat' then
  redis.call('ZADD', sessions, now + ARGV[5], session)
  redis.call('PEXPIRE', sessions, ARGV[5])
  redis.call('SET', base .. 'workers:' .. server, ARGV[7] .. ',"lastSeen":' .. now .. '}')
  redis.call('SADD', base .. 'workers:active', server)
  redis.call('SET', HEARTBEAT .. server, now, 'EX', 30)
  redis.call('HSET', handlers, server, ARGV[6])
  return 1
end
redis.call('ZREM', sessions, session)
redis.call('ZREMRANGEBYSCORE', sessions, '-inf', now)
local others = redis.call('ZRANGE', sessions, 0, -1)
local of_type = false
for _, other in ipairs(others) do of_type = of_type or other:sub(#ARGV[4] + 2) == kind end
if not of_type then redis.call('HDEL', handlers, server) end
if #others == 0 then
  redis.call('DEL', base .. 'workers:' .. server, HEARTBEAT .. server)
  redis.call('SREM', base .. 'workers:active', server)
end
return #others
