-- Replaces a job's data.
-- KEYS[1] base of the queue; ARGV[1] id, ARGV[2] data as JSON. Returns 1 done, 0 no such job.
--@include read_job

if not is_job(KEYS[1], ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1] .. ARGV[1], 'data', ARGV[2])
return 1
