-- Adds jobs to the index that peers pushed to the waiting list.
--   `x:heal`   while the whole list has to be read: `at`, the next position, and `score` of the job before it
--@include index
--@include dead_letter
local READ_THROUGH, WINDOW = X .. 'heal', 200
local reading_through = true

-- Adds jobs to the index that are in the list at these positions, with these scores. An id without data is not a job
-- any more, and data that can't be read can't be run by any worker: both are taken out of the list, and the second goes
-- to the dead letter. Returns true if any was taken out.
local function adopt(ids, positions, scores, now)
  local data, groups, left = strings_at(DATA, ids), {}, false
  for index, id in ipairs(ids) do
    local route, problem = route_of(data[index], id)
    if route then
      local key = route_key(route)
      local group = groups[key] or { route = route, entries = {} }
      groups[key] = group
      group.entries[#group.entries + 1] = scores[index]
      group.entries[#group.entries + 1] = id
    else
      redis.call('LSET', WAITING, positions[index], GONE)
      left = true
      if problem then poison(id, problem, now) end
    end
  end
  for _, group in pairs(groups) do add_to_index(group.route, group.entries) end
  return left
end

local function is_known(id) return not id or id == GONE or redis.call('ZSCORE', ORDER, id) end

-- Returns how many ids at the start of `ids` (or at its end) are unknown.
local function unknown_run(ids, backwards)
  local scores, run = scores_of(ORDER, ids), 0
  for step = 1, #ids do
    local index = backwards and #ids - step + 1 or step
    if scores[index] or ids[index] == GONE then break end
    run = run + 1
  end
  return run
end

-- Adds unknown jobs at the ends of the list to the index, because peers push there. If there are too many for one call,
-- the whole list is read in steps. Our own pushes call this first, so that no unknown job gets behind a known one.
local function adopt_ends(now)
  if is_known(redis.call('LINDEX', WAITING, -1)) and is_known(redis.call('LINDEX', WAITING, 0)) then return end
  if redis.call('EXISTS', READ_THROUGH) == 1 then return end
  local length, left = redis.call('LLEN', WAITING), false
  for _, backwards in ipairs({ true, false }) do
    local start = backwards and math.max(0, length - WINDOW) or 0
    local ids = redis.call('LRANGE', WAITING, start, start + WINDOW - 1)
    local run = #ids > 0 and unknown_run(ids, backwards) or 0
    if run == WINDOW and length > WINDOW then
      redis.call('HSET', READ_THROUGH, 'at', 0, 'score', '')
      return
    end
    if run > 0 then
      local first = backwards and redis.call('HINCRBY', SEQUENCE, 'tail', run) - run + 1
        or redis.call('HINCRBY', SEQUENCE, 'head', -run)
      local skipped, theirs, positions, scores = backwards and #ids - run or 0, {}, {}, {}
      for index = 1, run do
        theirs[index], positions[index] = ids[skipped + index], start + skipped + index - 1
        scores[index] = first + index - 1
      end
      left = adopt(theirs, positions, scores, now) or left
    end
  end
  if left then sweep() end
end

-- Returns scores for a run of jobs between a known one and the next known one.
local function scores_between(before, count)
  local after = before == '' and redis.call('ZRANGE', ORDER, 0, 0, 'WITHSCORES')
    or redis.call('ZRANGEBYSCORE', ORDER, '(' .. before, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  local scores, from, step = {}, nil, 1
  if not after[2] then
    from = redis.call('HINCRBY', SEQUENCE, 'tail', count) - count
  elseif before == '' then
    from = redis.call('HINCRBY', SEQUENCE, 'head', -count) - 1
  else
    from = tonumber(before)
    step = (tonumber(after[2]) - from) / (count + 1)
  end
  for index = 1, count do scores[index] = string.format('%.17g', from + step * index) end
  return scores
end

-- Does one step of reading the whole list. Returns true while there is more to read.
local function adopt_step(now)
  local at, before = unpack(redis.call('HMGET', READ_THROUGH, 'at', 'score'))
  reading_through = at
  if not at then return false end
  at = tonumber(at)
  local ids = redis.call('LRANGE', WAITING, at, at + WINDOW - 1)
  local scores = #ids > 0 and scores_of(ORDER, ids) or {}
  local run, runs = nil, {}
  for index, id in ipairs(ids) do
    if scores[index] or id == GONE then
      run = nil
      before = scores[index] or before
    elseif run then
      run.ids[#run.ids + 1] = id
    else
      run = { ids = { id }, first = at + index - 1, before = before }
      runs[#runs + 1] = run
    end
  end
  local length, left = redis.call('LLEN', WAITING), false
  for _, one in ipairs(runs) do
    local positions, new = {}, scores_between(one.before, #one.ids)
    for index = 1, #one.ids do positions[index] = one.first + index - 1 end
    left = adopt(one.ids, positions, new, now) or left
    if one == run then before = new[#new] end
  end
  if left then sweep() end
  if #ids < WINDOW then
    -- Jobs that peers took meanwhile have shifted others over the position, so read again, at most three times: the
    -- numbers never match if an id is in the list twice.
    local short = redis.call('ZCARD', ORDER) < redis.call('LLEN', WAITING)
    local again = short and redis.call('HINCRBY', READ_THROUGH, 'round', 1) < 3
    if again then redis.call('HSET', READ_THROUGH, 'at', 0, 'score', '') else redis.call('DEL', READ_THROUGH) end
    return again
  end
  local shorter = length - redis.call('LLEN', WAITING)
  redis.call('HSET', READ_THROUGH, 'at', math.max(0, at + #ids - shorter), 'score', before or '')
  return true
end

-- Corrects the next position after jobs before it were taken out of the list.
local function step_back(count)
  if count > 0 and reading_through and redis.call('EXISTS', READ_THROUGH) == 1 then
    local at = tonumber(redis.call('HGET', READ_THROUGH, 'at'))
    redis.call('HSET', READ_THROUGH, 'at', math.max(0, at - count))
  end
end
