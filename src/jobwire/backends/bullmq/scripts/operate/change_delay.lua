-- Gives a delayed job another moment.
-- KEYS[1] base of the queue; ARGV[1] id, ARGV[2] delay in ms, ARGV[3] now in ms.
-- Returns 1 done, 0 no such job, -1 not delayed.
--@include placing
--@include reading_job
--@include telling

local base, id, due = KEYS[1], ARGV[1], tonumber(ARGV[2]) + tonumber(ARGV[3])
if not is_job(base, id) then return 0 end
if not redis.call('ZSCORE', base .. 'delayed', id) then return -1 end
redis.call('HSET', base .. id, 'delay', ARGV[2])
-- The place that it leaves is still taken when the new one is chosen, as with BullMQ: a job that is given the
-- millisecond it had goes behind the others of that millisecond.
insert_delayed(base, id, due)
tell_trimmed(base, 'delayed', 'jobId', id, 'delay', string.format('%.0f', due))
mark_delayed(base)
return 1
