-- Records of jobs that a peer claimed. A peer sends no signal, so that is only seen when the job has left its
-- container.
--@include keys
--@include route

-- Records the present state of a job. The run of a peer gets a record without a token among the claims.
local function update_record(kind, id, now)
  if redis.call('SISMEMBER', ACTIVE, id) == 1 then
    redis.call('HSETNX', X .. 'claims:' .. kind, id, '|' .. now .. '|3|')
  elseif redis.call('MGET', STATUS .. id)[1] == 'completed' then
    redis.call('ZADD', X .. 'completed:' .. kind, 'NX', now, id)
  end
end

-- Returns the type of a job and adds it to the types. The type is '' if the data is missing or can't be read.
local function recorded_type(id)
  local route = route_of(redis.call('MGET', DATA .. id)[1], id)
  local kind = route and route.type or ''
  redis.call('SADD', X .. 'types', kind)
  return kind
end

-- Makes the records of running jobs agree with the running set. A peer's claims get a record without a token, and
-- records whose run a peer ended are deleted.
local function update_records(types, now)
  for _, kind in ipairs(types) do
    for _, id in ipairs(redis.call('HKEYS', X .. 'claims:' .. kind)) do
      if redis.call('SISMEMBER', ACTIVE, id) == 0 then
        redis.call('HDEL', X .. 'claims:' .. kind, id)
        update_record(kind, id, now)
      end
    end
  end
  for _, id in ipairs(redis.call('SMEMBERS', ACTIVE)) do update_record(recorded_type(id), id, now) end
end
