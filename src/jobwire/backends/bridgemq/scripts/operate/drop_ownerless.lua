-- Deletes a lock that never expires, unless a running job owns it.
-- KEYS[1] namespace, KEYS[2] the lock of a job or of the scheduler. Returns 1 if it was deleted.
--@include keys
local lock = KEYS[2]
if redis.call('PTTL', lock) ~= -1 then return 0 end
if lock:sub(1, #LOCK) == LOCK and redis.call('SISMEMBER', ACTIVE, lock:sub(#LOCK + 1)) == 1 then return 0 end
return redis.call('DEL', lock)
