-- Taking notice of what others pushed to the waiting list.
--   x:heal   while the list has to be read through: `at`, the position reached, and `score` of the job before it
--@include index
--@include bury
local HEAL, WINDOW = X .. 'heal', 200
local reading_through = true

-- Note jobs that stand in the list at these positions, with these scores. An id without data is no job any more, and
-- one that can't be read can't be run by anyone: both leave the list, the second for the dead letter. True if any left.
local function adopt(ids, positions, scores, now)
  local data, lines, left = strings_at(DATA, ids), {}, false
  for index, id in ipairs(ids) do
    local route, problem = route_of(data[index], id)
    if route then
      local key = line_of(route)
      local line = lines[key] or { route = route, places = {} }
      lines[key] = line
      line.places[#line.places + 1] = scores[index]
      line.places[#line.places + 1] = id
    else
      redis.call('LSET', WAITING, positions[index], GONE)
      left = true
      if problem then poison(id, problem, now) end
    end
  end
  for _, line in pairs(lines) do note(line.route, line.places) end
  return left
end

local function is_known(id) return not id or id == GONE or redis.call('ZSCORE', ORDER, id) end

-- How many ids at the start of `ids` (or at its end) are unknown.
local function unknown_run(ids, backwards)
  local scores, run = scores_of(ORDER, ids), 0
  for step = 1, #ids do
    local index = backwards and #ids - step + 1 or step
    if scores[index] or ids[index] == GONE then break end
    run = run + 1
  end
  return run
end

-- Others push to the ends of the list. If an end is unknown, note the jobs there; if they are too many for one look,
-- the list is read through in steps. Our own pushes do this first, so nothing unknown gets covered by something known.
local function adopt_ends(now)
  if is_known(redis.call('LINDEX', WAITING, -1)) and is_known(redis.call('LINDEX', WAITING, 0)) then return end
  if redis.call('EXISTS', HEAL) == 1 then return end
  local length, left = redis.call('LLEN', WAITING), false
  for _, backwards in ipairs({ true, false }) do
    local start = backwards and math.max(0, length - WINDOW) or 0
    local ids = redis.call('LRANGE', WAITING, start, start + WINDOW - 1)
    local run = #ids > 0 and unknown_run(ids, backwards) or 0
    if run == WINDOW and length > WINDOW then
      redis.call('HSET', HEAL, 'at', 0, 'score', '')
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

-- Scores for a run of jobs between a known one and the next known one.
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

-- One step of reading the list through. True while there is more to read.
local function adopt_step(now)
  local at, before = unpack(redis.call('HMGET', HEAL, 'at', 'score'))
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
    -- What peers took meanwhile has shifted the rest past us: then once more, though not for ever (an id may stand
    -- twice).
    local short = redis.call('ZCARD', ORDER) < redis.call('LLEN', WAITING)
    local again = short and redis.call('HINCRBY', HEAL, 'round', 1) < 3
    if again then redis.call('HSET', HEAL, 'at', 0, 'score', '') else redis.call('DEL', HEAL) end
    return again
  end
  local shorter = length - redis.call('LLEN', WAITING)
  redis.call('HSET', HEAL, 'at', math.max(0, at + #ids - shorter), 'score', before or '')
  return true
end

-- Takings in front of the point that the reading has reached shift it.
local function step_back(count)
  if count > 0 and reading_through and redis.call('EXISTS', HEAL) == 1 then
    local at = tonumber(redis.call('HGET', HEAL, 'at'))
    redis.call('HSET', HEAL, 'at', math.max(0, at - count))
  end
end
