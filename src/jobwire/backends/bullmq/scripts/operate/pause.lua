-- Stops workers from claiming jobs. The list of waiting jobs is renamed to `paused`, as in BullMQ 5.
-- KEYS[1] base of the queue. Returns nothing.
-- Both lists exist only where BullMQ 6 clients share the queue (they don't rename `wait`): then the jobs of `wait` go
-- behind those of `paused`. No list is ever renamed onto another one, which would lose its jobs.
--@include join_lists
--@include events

local base = KEYS[1]
join_lists(base, 'paused')
redis.call('HSET', base .. 'meta', 'paused', 1)
redis.call('DEL', base .. 'marker')
add_event(base, 'paused')
