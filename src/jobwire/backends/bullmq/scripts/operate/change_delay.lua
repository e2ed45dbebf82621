-- Changes the time when a delayed job is due.
-- KEYS[1] base of the queue; ARGV[1] id, ARGV[2] delay in ms, ARGV[3] now in ms.
-- Returns 1 done, 0 no such job, -1 not delayed.
--@include enqueue
--@include read_job
--@include events

local base, id, due = KEYS[1], ARGV[1], tonumber(ARGV[2]) + tonumber(ARGV[3])
if not is_job(base, id) then return 0 end
if not redis.call('ZSCORE', base .. 'delayed', id) then return -1 end
redis.call('HSET', base .. id, 'delay', ARGV[2])
-- The old score is still in use when the new one is chosen, as in BullMQ: a job that is given the millisecond it had
-- goes behind the others of that millisecond.
insert_delayed(base, id, due)
add_event_and_trim(base, 'delayed', 'jobId', id, 'delay', string.format('%.0f', due))
mark_delayed(base)
return 1
