-- The dead letter. What is wrong with a job is written as its result, where readers of the spec look for it.
--   x:aside   id and reason of jobs that were set aside unrun, for the leader to write into its log

local ASIDE, MOST_ASIDE = X .. 'aside', 200

local function failure(name, message, now)
  return cjson.encode({ success = false, error = { name = name, message = message }, completedAt = tonumber(now),
    processingTime = 0 })
end

-- Put a job that stands in no queue any more to the dead, once. `kind` is its type, '' if it has none that can be read.
local function bury(id, kind, result, now)
  local new = redis.call('ZADD', X .. 'dead:' .. kind, now, id) == 1
  if new or not redis.call('LPOS', DEADLETTER, id) then redis.call('LPUSH', DEADLETTER, id) end
  redis.call('SET', STATUS .. id, 'dead')
  redis.call('SET', RESULT .. id, result, 'EX', DAY)
  redis.call('SADD', X .. 'types', kind)
end

-- The same for a job that can't be run at all.
local function set_aside(id, kind, name, problem, now)
  bury(id, kind, failure(name, problem, now), now)
  redis.call('RPUSH', ASIDE, id, problem)
  redis.call('LTRIM', ASIDE, -MOST_ASIDE, -1)
end

local function poison(id, problem, now) set_aside(id, '', 'PoisonedJob', problem, now) end
