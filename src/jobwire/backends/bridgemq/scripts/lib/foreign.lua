-- Jobs that a peer took. It tells nobody, so we notice when the job is not where it was.
--@include place

-- Note where a job of the type is now: a peer's run has a record without a token among the claims.
local function follow(kind, id, now)
  if redis.call('SISMEMBER', ACTIVE, id) == 1 then
    redis.call('HSETNX', X .. 'claims:' .. kind, id, '|' .. now .. '|3|')
  elseif redis.call('MGET', STATUS .. id)[1] == 'completed' then
    redis.call('ZADD', X .. 'completed:' .. kind, 'NX', now, id)
  end
end
