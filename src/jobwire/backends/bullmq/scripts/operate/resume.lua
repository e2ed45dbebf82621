-- Lets workers claim jobs again.
-- KEYS[1] base of the queue. Returns nothing.
--@include join_lists
--@include marker
--@include events

local base = KEYS[1]
local was_paused = redis.call('HDEL', base .. 'meta', 'paused') == 1
local had_list = redis.call('EXISTS', base .. 'paused') == 1
join_lists(base, 'wait')
-- A queue that a BullMQ 6 client paused has its jobs in `wait` and no marker.
local ready = had_list or (was_paused and redis.call('EXISTS', base .. 'wait') == 1)
if ready or redis.call('EXISTS', base .. 'prioritized') == 1 then
  mark_ready(base)
else
  mark_delayed(base)
end
add_event(base, 'resumed')
