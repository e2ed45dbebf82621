-- Reads the outcomes of a job's children. KEYS[1] the job's key.
-- Returns four lists: results by child, errors by child, pending children, those that fail their parent.

local job = KEYS[1]
return { redis.call('HGETALL', job .. ':processed'), redis.call('HGETALL', job .. ':failed'),
  redis.call('SMEMBERS', job .. ':dependencies'), redis.call('ZRANGE', job .. ':unsuccessful', 0, -1) }
