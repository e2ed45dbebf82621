-- Makes the caller the leader if there is no other one. KEYS[1] namespace; ARGV: scheduler id, seconds of the lease (0:
-- step down).
-- Returns 1 if the caller leads.
--@include keys
local key, id, lease = base .. 'scheduler:lock', ARGV[1], ARGV[2]
local leader = redis.call('MGET', key)[1]
if lease == '0' then
  if leader == id then redis.call('DEL', key) end
  return 0
end
if leader == id then
  redis.call('EXPIRE', key, lease)
  return 1
end
return redis.call('SET', key, id, 'NX', 'EX', lease) and 1 or 0
