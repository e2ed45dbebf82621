-- Ends runs whose job has to wait: for its children, or for a rate limit.
--@include finish
--@include put_back

-- Parks the job until its children have finished, or makes it ready at once if none is pending any more. Returns 0, a
-- refusal of end_claim, or -9 if a child has failed whose failure fails this job.
local function park(base, id, token, now)
  local job = base .. id
  if redis.call('EXISTS', job .. ':unsuccessful') == 1 then return -9 end
  local code = end_claim(base, id, token)
  if code ~= 0 then return code end
  if redis.call('EXISTS', job .. ':dependencies') == 0 then
    release(base, id)
    return 0
  end
  redis.call('ZADD', base .. 'waiting-children', now, id)
  redis.call('XADD', base .. 'events', '*', 'event', 'waiting-children', 'jobId', id, 'prev', 'active')
  return 0
end

-- Sets the counter of the window to its largest number, which exceeds every worker's limit. Returns the ms it lasts.
local function throttle(base, delay)
  redis.call('SET', base .. 'limiter', '9007199254740991', 'PX', delay)
  return tonumber(delay)
end
