-- Returns the numbers of waiting, delayed, active, completed and dead jobs of a type.
--@include keys
local function counts_of(kind, now)
  redis.call('ZREMRANGEBYSCORE', X .. 'completed:' .. kind, '-inf', now - DAY * 1000)
  return {
    redis.call('ZCARD', X .. 'type:' .. kind),
    redis.call('ZCARD', X .. 'delayed:' .. kind),
    redis.call('HLEN', X .. 'claims:' .. kind),
    redis.call('ZCARD', X .. 'completed:' .. kind),
    redis.call('ZCARD', X .. 'dead:' .. kind),
  }
end
