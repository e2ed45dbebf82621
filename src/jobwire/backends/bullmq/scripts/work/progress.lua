-- Stores a job's progress.
-- KEYS[1] base of the queue; ARGV[1] id, ARGV[2] progress as JSON. Returns 1 done, 0 no such job.
--@include read_job
--@include events

local base, id, value = KEYS[1], ARGV[1], ARGV[2]
if not is_job(base, id) then return 0 end
redis.call('HSET', base .. id, 'progress', value)
add_event_and_trim(base, 'progress', 'jobId', id, 'data', value)
return 1
