-- Ends claims. Only the owner may: the lock must contain its server id, and the record of the claim its token.
--@include due
--@include counters

local function claims_of(kind) return X .. 'claims:' .. kind end

local function count_down(kind, number)
  if number > 0 and kind ~= '' and count(CONCURRENT .. kind, -number) < 0 then redis.call('SET', CONCURRENT .. kind, 0) end
end

local function is_of(record, token) return record and record:sub(1, #token + 1) == token .. '|' end

-- Takes one job back from its worker. Returns false if the claim is lost.
local function end_claim(worker, id, token)
  local claims = claims_of(worker.type)
  if redis.call('MGET', LOCK .. id)[1] ~= worker.server or not is_of(redis.call('HGET', claims, id), token) then
    return false
  end
  if redis.call('SREM', ACTIVE, id) == 0 then return false end
  redis.call('DEL', LOCK .. id)
  redis.call('HDEL', claims, id)
  count_down(worker.type, 1)
  return true
end

-- Completes many jobs at once. They are in ARGV from `first` on, four values each: id, token, result, and '' or the
-- template of a job that repeats by cron. Fills in a code per job (0 done, 1 lost) and returns the number of those
-- done.
local COMPLETION = 4

local function complete_all(worker, first, number, now, codes)
  local ids, claims = {}, claims_of(worker.type)
  for index = 1, number do ids[index] = ARGV[first + (index - 1) * COMPLETION] end
  local locks, records, seen = strings_at(LOCK, ids), {}, {}
  for from = 1, number, 1000 do
    local part = redis.call('HMGET', claims, unpack(ids, from, math.min(from + 999, number)))
    for index = 1, #part do records[from + index - 1] = part[index] end
  end
  local done, scores = {}, {}
  for index = 1, number do
    local id, at = ids[index], first + (index - 1) * COMPLETION
    if locks[index] ~= worker.server or seen[id] or not is_of(records[index], ARGV[at + 1]) then
      codes[index] = 1
    else
      codes[index], seen[id] = 0, true
      done[#done + 1] = id
      redis.call('SET', RESULT .. id, ARGV[at + 2], 'EX', DAY)
      if ARGV[at + 3] ~= '' and redis.call('ZSCORE', CRON, id) then
        redis.call('SET', STATUS .. id, 'cron')
      else
        redis.call('SET', STATUS .. id, 'completed', 'EX', DAY)
        redis.call('EXPIRE', DATA .. id, DAY)
        scores[#scores + 1], scores[#scores + 2] = now, id
      end
    end
  end
  if #done == 0 then return 0 end
  over_keys('DEL', prefixed(LOCK, done))
  over_items('SREM', ACTIVE, done)
  over_items('HDEL', claims, done)
  over_items('HDEL', X .. 'stalls', done)
  count_down(worker.type, #done)
  if redis.call('EXISTS', WITH_OUTPUT) == 1 then
    for _, id in ipairs(done) do
      if redis.call('SREM', WITH_OUTPUT, id) == 1 then
        redis.call('EXPIRE', PROGRESS .. id, DAY)
        redis.call('EXPIRE', LOGS .. id, DAY)
      end
    end
  end
  local completed = X .. 'completed:' .. worker.type
  over_items('ZADD', completed, scores)
  redis.call('ZREMRANGEBYSCORE', completed, '-inf', now - DAY * 1000)
  return #done
end

-- Delays a job until the time `due`.
local function postpone(kind, id, due)
  redis.call('SET', STATUS .. id, 'delayed')
  redis.call('ZADD', DELAYED, due, id)
  redis.call('ZADD', X .. 'delayed:' .. kind, due, id)
  redis.call('SADD', X .. 'types', kind)
end

local function wait_again(id, route, front)
  redis.call('SET', STATUS .. id, 'waiting')
  enqueue({ id }, route, front)
end

local function wake(kind) redis.call('PUBLISH', X .. 'wake', kind) end
