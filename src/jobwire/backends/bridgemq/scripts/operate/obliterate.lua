-- Deletes the rest of a type, after its jobs: schedules, counters and jobwire's own keys. KEYS[1] namespace; ARGV:
-- type.
--@include remove
local kind = ARGV[1]
for _, id in ipairs(redis.call('ZRANGE', CRON, 0, -1)) do
  local route = route_of(redis.call('MGET', DATA .. id)[1], id)
  if route and route.type == kind then
    redis.call('ZREM', CRON, id)
    delete_keys({ id })
  end
end
local servers = redis.call('SMEMBERS', X .. 'servers:' .. kind)
servers[#servers + 1] = ''
for _, server in ipairs(servers) do redis.call('DEL', X .. 'routes:' .. scope_of(kind, server)) end
redis.call('DEL', CONCURRENT .. kind, MINUTE .. kind)
over_keys('DEL', { X .. 'rate:' .. kind, X .. 'servers:' .. kind, X .. 'claims:' .. kind })
redis.call('SREM', X .. 'types', kind)
redis.call('SREM', PAUSED, kind)
return 1
