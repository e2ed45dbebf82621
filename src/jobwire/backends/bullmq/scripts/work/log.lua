-- Appends a line to a job's log.
-- KEYS[1] base of the queue; ARGV[1] id, ARGV[2] the line, ARGV[3] how many lines to keep (0: the job's own option
-- `kl`, or all). Returns 1 done, 0 no such job.
--@include read_job

local key, keep = KEYS[1] .. ARGV[1], tonumber(ARGV[3])
if not is_job(KEYS[1], ARGV[1]) then return 0 end
if keep == 0 then keep = tonumber(object_of(redis.call('HGET', key, 'opts')).kl) or 0 end
redis.call('RPUSH', key .. ':logs', ARGV[2])
if keep > 0 then redis.call('LTRIM', key .. ':logs', -keep, -1) end
return 1
