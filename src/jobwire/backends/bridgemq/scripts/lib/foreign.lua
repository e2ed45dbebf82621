-- Jobs that a peer took. It tells nobody, so we notice when the job is not where it was.
--@include place
--@include route

-- Note where a job of the type is now: a peer's run has a record without a token among the claims.
local function follow(kind, id, now)
  if redis.call('SISMEMBER', ACTIVE, id) == 1 then
    redis.call('HSETNX', X .. 'claims:' .. kind, id, '|' .. now .. '|3|')
  elseif redis.call('MGET', STATUS .. id)[1] == 'completed' then
    redis.call('ZADD', X .. 'completed:' .. kind, 'NX', now, id)
  end
end

-- The type of a job, noted among the types; '' if it can't be read or has no data.
local function noted_type(id)
  local route = route_of(redis.call('MGET', DATA .. id)[1], id)
  local kind = route and route.type or ''
  redis.call('SADD', X .. 'types', kind)
  return kind
end

-- Bring the records of running jobs in line with the running set: a peer's claims get a record without a token, and
-- records whose run a peer ended go.
local function follow_running(types, now)
  for _, kind in ipairs(types) do
    for _, id in ipairs(redis.call('HKEYS', X .. 'claims:' .. kind)) do
      if redis.call('SISMEMBER', ACTIVE, id) == 0 then
        redis.call('HDEL', X .. 'claims:' .. kind, id)
        follow(kind, id, now)
      end
    end
  end
  for _, id in ipairs(redis.call('SMEMBERS', ACTIVE)) do follow(noted_type(id), id, now) end
end
