-- Deletes a lock or a unique key that no job owns and that would stay without end.
--
-- KEYS[1]  the lock or the unique key
-- KEYS[2]  the job
-- KEYS[3]  the queue's list of active jobs
-- ARGV     id of the job, "lock" or "unique"
-- Returns  1 if it was deleted
if redis.call('PTTL', KEYS[1]) ~= -1 then return 0 end
if ARGV[2] == 'unique' and redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call('EXISTS', KEYS[2]) == 1 then
  if ARGV[2] == 'unique' or redis.call('LPOS', KEYS[3], ARGV[1]) then return 0 end
end
return redis.call('DEL', KEYS[1])
