-- The dead letter. What is wrong with a job is written as its result, where readers of the spec look for it.

local function failure(name, message, now)
  return cjson.encode({ success = false, error = { name = name, message = message }, completedAt = tonumber(now),
    processingTime = 0 })
end

-- Put a job that stands in no queue any more to the dead. `kind` is its type, '' if it has none that can be read.
local function bury(id, kind, result, now)
  redis.call('LPUSH', DEADLETTER, id)
  redis.call('SET', STATUS .. id, 'dead')
  redis.call('SET', RESULT .. id, result, 'EX', DAY)
  redis.call('SADD', X .. 'types', kind)
  redis.call('ZADD', X .. 'dead:' .. kind, now, id)
end
