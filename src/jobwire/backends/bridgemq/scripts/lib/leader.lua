-- The fence of the scheduler: KEYS[1] namespace, ARGV[1] the scheduler's id. A script that acts for the leader does
-- nothing unless the lock is its caller's at this moment; a leader that was asleep beyond its lease finds that out
-- here.
--@include orphans
local function leads() return redis.call('MGET', base .. 'scheduler:lock')[1] == ARGV[1] end
