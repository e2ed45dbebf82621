-- Ends a claim, which every outcome but completion begins with, and fails a job for good.
--@include attempts
--@include job_keys
--@include parent
--@include prune
--@include unique

-- Takes one job back from its worker. Returns 0, or the reason of a refusal: -1 not a hash, -2 no lock, -6 the lock of
-- another worker, -3 not active. A refusal changes nothing. MGET, because a lock of a wrong type counts as no lock and
-- must not raise an error.
local function end_claim(base, id, token)
  local job = base .. id
  if redis.call('TYPE', job).ok ~= 'hash' then return -1 end
  local held = redis.call('MGET', job .. ':lock')[1]
  if held ~= token then return held and -6 or -2 end
  if redis.call('LREM', base .. 'active', -1, id) == 0 then return -3 end
  redis.call('DEL', job .. ':lock')
  redis.call('SREM', base .. 'stalled', id)
  return 0
end

local function give_back_unique(base, key, id, now)
  release_unique(base, key, id)
  add_unique_successor(base, key, now)
end

-- Fails one job for good. `one` has id, token, reason, stack (JSON), attempts, count, age.
local function fail(base, one, now)
  local code = end_claim(base, one.id, one.token)
  if code ~= 0 then return code end
  local id, job, failed = one.id, base .. one.id, base .. 'failed'
  local fields = redis.call('HMGET', job, 'parentKey', 'parent', 'deid', 'atm')
  local attempts = attempts_after(fields[4])
  -- A unique key or a parent of a wrong type must not stop this: the job has been taken from `active` already.
  if fields[3] then pcall(give_back_unique, base, fields[3], id, now) end
  if fields[1] then pcall(child_failed, fields[1], fields[2], job, one.reason, now) end
  if one.count == '0' then
    if fields[1] then pcall(leave_parent, fields[1], fields[2], job, now) end
    delete_job_keys(base, {id})
  else
    redis.call('ZADD', failed, now, id)
    redis.call('HSET', job, 'failedReason', one.reason, 'stacktrace', one.stack, 'finishedOn', now, 'atm', attempts)
    redis.call('HDEL', job, 'defa')
    prune(base, failed, one.count, one.age, now)
  end
  redis.call('XADD', base .. 'events', '*', 'event', 'failed', 'jobId', id, 'failedReason', one.reason, 'prev', 'active')
  if attempts >= (tonumber(one.attempts) or 0) then
    redis.call('XADD', base .. 'events', '*', 'event', 'retries-exhausted', 'jobId', id, 'attemptsMade', attempts)
  end
  return 0
end
