-- KEYS[1] namespace; ARGV: type. Returns how many jobs of the type are waiting, delayed, active, completed, dead.
--@include place
local now, kind = server_now(), ARGV[1]
redis.call('ZREMRANGEBYSCORE', X .. 'completed:' .. kind, '-inf', now - DAY * 1000)
return {
  redis.call('ZCARD', X .. 'type:' .. kind),
  redis.call('ZCARD', X .. 'delayed:' .. kind),
  redis.call('HLEN', X .. 'claims:' .. kind),
  redis.call('ZCARD', X .. 'completed:' .. kind),
  redis.call('ZCARD', X .. 'dead:' .. kind),
}
