-- Events: most of them trim the stream as they are written, some only add to it.
--@include gate

local function tell_trimmed(base, ...)
  redis.call('XADD', base .. 'events', 'MAXLEN', '~', event_limit(base), '*', 'event', ...)
end

local function tell(base, ...)
  redis.call('XADD', base .. 'events', '*', 'event', ...)
end
