-- Counts the jobs of a type by state.
-- KEYS[1] namespace; ARGV: type. Returns the numbers of waiting, delayed, active, completed and dead jobs.
--@include keys
local now, kind = server_now(), ARGV[1]
redis.call('ZREMRANGEBYSCORE', X .. 'completed:' .. kind, '-inf', now - DAY * 1000)
return {
  redis.call('ZCARD', X .. 'type:' .. kind),
  redis.call('ZCARD', X .. 'delayed:' .. kind),
  redis.call('HLEN', X .. 'claims:' .. kind),
  redis.call('ZCARD', X .. 'completed:' .. kind),
  redis.call('ZCARD', X .. 'dead:' .. kind),
}
