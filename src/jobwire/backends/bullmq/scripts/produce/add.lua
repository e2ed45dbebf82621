-- Adds jobs to one queue, in order.
--
-- KEYS[1]  base of the queue, `<prefix>:<queue>:`
-- ARGV     number of jobs, number of those with a parent, now ms, then the jobs
-- Returns  a reply per job, as add_jobs describes it
--@include add

local replies = add_jobs(KEYS[1], 4, tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3])
return replies
