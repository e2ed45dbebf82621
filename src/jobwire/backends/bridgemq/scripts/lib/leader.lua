-- The fence of the scheduler: KEYS[1] namespace, ARGV[1] the scheduler's id. A script that acts for the leader does
-- nothing unless its caller has the lock now. A leader that was suspended beyond its lease is stopped here.
--@include orphans
local function leads() return redis.call('MGET', base .. 'scheduler:lock')[1] == ARGV[1] end
