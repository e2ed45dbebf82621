-- Stops workers from taking jobs. The waiting jobs go under the name `paused`, as BullMQ 5 has it.
-- KEYS[1] base of the queue. Returns nothing.
-- Both lists exist only where BullMQ 6 clients share the queue (they leave `wait` in place): then the jobs of `wait`
-- queue up behind those of `paused`. No list is ever renamed onto another one, which would lose its jobs.
--@include joining
--@include telling

local base = KEYS[1]
join_lists(base, 'paused')
redis.call('HSET', base .. 'meta', 'paused', 1)
redis.call('DEL', base .. 'marker')
tell(base, 'paused')
