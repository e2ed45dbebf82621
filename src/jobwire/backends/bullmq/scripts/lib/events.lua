-- Writes events. As in BullMQ, most events trim the stream when they are written, and some only add to it.
--@include gate

local function add_event_and_trim(base, ...)
  redis.call('XADD', base .. 'events', 'MAXLEN', '~', event_limit(base), '*', 'event', ...)
end

local function add_event(base, ...)
  redis.call('XADD', base .. 'events', '*', 'event', ...)
end
