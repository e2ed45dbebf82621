-- Moves jobs to the dead letter list. The error is written as the job's result, where clients of the spec look for it.
--   x:aside   id and reason of jobs that can't be run, until the leader has logged them

local ASIDE, MOST_ASIDE = X .. 'aside', 200

local function failure(name, message, now)
  return cjson.encode({ success = false, error = { name = name, message = message }, completedAt = tonumber(now),
    processingTime = 0 })
end

-- Puts a job that is in no other container into the dead letter list, once. `kind` is its type, '' if it can't be read.
local function to_dead_letter(id, kind, result, now)
  local new = redis.call('ZADD', X .. 'dead:' .. kind, now, id) == 1
  if new or not redis.call('LPOS', DEADLETTER, id) then redis.call('LPUSH', DEADLETTER, id) end
  redis.call('SET', STATUS .. id, 'dead')
  redis.call('SET', RESULT .. id, result, 'EX', DAY)
  redis.call('SADD', X .. 'types', kind)
end

-- Puts a job that can't be run into the dead letter list, for the leader to log.
local function set_aside(id, kind, name, problem, now)
  to_dead_letter(id, kind, failure(name, problem, now), now)
  redis.call('RPUSH', ASIDE, id, problem)
  redis.call('LTRIM', ASIDE, -MOST_ASIDE, -1)
end

-- Returns the type of a job, also of one that can't be run. It is '' if the data can't be read.
local function readable_type(id)
  local fine, job = pcall(cjson.decode, redis.call('MGET', DATA .. id)[1] or '')
  return fine and type(job) == 'table' and type(job.type) == 'string' and job.type or ''
end

-- A job whose type can be read is dead in the queue of that type, where an operator looks for it.
local function poison(id, problem, now) set_aside(id, readable_type(id), 'PoisonedJob', problem, now) end
