-- Ending a run: what every outcome shares, and the two ways in which a job is over.
--@include active
--@include chunks
--@include job_keys
--@include parent
--@include prune
--@include unique

-- Take one job back from its worker. 0, or why not: -1 no hash, -2 no lock, -6 another's lock, -3 not active.
-- A refusal leaves everything as it was. MGET, because a lock of a foreign type is no lock, and no error either.
local function let_go(base, id, token)
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

-- Completed jobs come as ARGV at `first`, seven each: id, token, value, jobs to keep, seconds to keep, attempts made
-- with this one, unique key or ''.
local COMPLETION = 7

-- Which of the completed jobs may be: fills in a code per job, 0 where it may; the ids of those.
local function check_completions(base, first, number, codes)
  local hashes, locks, children = {}, {}, {}
  for index = 1, number do
    local job = base .. ARGV[first + (index - 1) * COMPLETION]
    hashes[index], locks[index] = job, job .. ':lock'
    children[2 * index - 1], children[2 * index] = job .. ':dependencies', job .. ':unsuccessful'
  end
  local all_there = sum_over('EXISTS', hashes) == number
  local no_children = sum_over('EXISTS', children) == 0
  local held = get_all(locks)
  local ids, seen = {}, {}
  for index = 1, number do
    local at = first + (index - 1) * COMPLETION
    local id, code = ARGV[at], 0
    if not all_there and redis.call('EXISTS', hashes[index]) == 0 then
      code = -1
    elseif held[index] ~= ARGV[at + 1] or seen[id] then
      code = held[index] and not seen[id] and -6 or -2
    elseif not no_children and redis.call('EXISTS', children[2 * index - 1]) == 1 then
      code = -4
    elseif not no_children and redis.call('EXISTS', children[2 * index]) == 1 then
      code = -9
    else
      seen[id] = true
      ids[#ids + 1] = id
    end
    codes[index] = code
  end
  return ids, locks
end

-- Jobs that share a rule of keeping enter `completed` together, then the rule is applied once.
local function keep_completed(base, count, age, scores, dropped, now)
  call_many('ZADD', base .. 'completed', scores)
  delete_job_keys(base, dropped)
  if #scores > 0 then prune(base, base .. 'completed', count, age, now) end
end

-- Complete jobs. Fills in `codes`; returns how many were completed.
local function complete_all(base, first, number, now, codes)
  local ids, locks = check_completions(base, first, number, codes)
  if #ids == 0 then return 0 end
  local taken, found = take_active(base, ids)
  if found < number then
    ids, locks = {}, {}
    for index = 1, number do
      local id = ARGV[first + (index - 1) * COMPLETION]
      if codes[index] == 0 and not taken[id] then
        codes[index] = -3
      elseif codes[index] == 0 then
        ids[#ids + 1] = id
        locks[#locks + 1] = base .. id .. ':lock'
      end
    end
    if #ids == 0 then return 0 end
  end
  sum_over('DEL', locks)
  call_many('SREM', base .. 'stalled', ids)
  local events, scores, dropped = base .. 'events', {}, {}
  local count, age
  for index = 1, number do
    if codes[index] == 0 then
      local at = first + (index - 1) * COMPLETION
      local id, value, unique = ARGV[at], ARGV[at + 2], ARGV[at + 6]
      local job = base .. id
      if ARGV[at + 3] ~= count or ARGV[at + 4] ~= age then
        if count then keep_completed(base, count, age, scores, dropped, now) end
        scores, dropped, count, age = {}, {}, ARGV[at + 3], ARGV[at + 4]
      end
      if unique ~= '' then give_back_unique(base, unique, id, now) end
      -- Unlike the rest, a parent can come and go while the job runs.
      local parent_key = redis.pcall('HGET', job, 'parentKey')
      if type(parent_key) == 'string' then
        child_completed(parent_key, redis.call('HGET', job, 'parent'), job, value, now)
      end
      if count == '0' then
        dropped[#dropped + 1] = id
      else
        redis.pcall('HSET', job, 'returnvalue', value, 'finishedOn', now, 'atm', ARGV[at + 5])
        local n = #scores
        scores[n + 1], scores[n + 2] = now, id
      end
      redis.call('XADD', events, '*', 'event', 'completed', 'jobId', id, 'returnvalue', value, 'prev', 'active')
    end
  end
  keep_completed(base, count, age, scores, dropped, now)
  return #ids
end

-- Fail one job for good. `one` holds id, token, reason, stack (JSON), attempts, count, age.
local function fail(base, one, now)
  local code = let_go(base, one.id, one.token)
  if code ~= 0 then return code end
  local id, job, failed = one.id, base .. one.id, base .. 'failed'
  local fields = redis.call('HMGET', job, 'parentKey', 'parent', 'deid', 'atm')
  local attempts = (tonumber(fields[4] or 0) or 0) + 1
  if fields[3] then give_back_unique(base, fields[3], id, now) end
  if fields[1] then child_failed(fields[1], fields[2], job, one.reason, now) end
  if one.count == '0' then
    if fields[1] then leave_parent(fields[1], fields[2], job, now) end
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
