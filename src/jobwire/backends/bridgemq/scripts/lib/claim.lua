-- Picking jobs: the routes that the worker matches are known to it, so only their lines are looked at, whatever else
-- stands in the list. Limits belong to a route, so a line at its limit is passed over as a whole.
--@include promote
--@include foreign
--@include counting
local ROUNDS, LIMIT_PAUSE, A_MINUTE = 4, 200, 60000

-- How many jobs of a route with these limits may start now; the second value: ms until the minute is over, if that is
-- what holds them back.
local function allowance(kind, wanted, concurrent, per_minute)
  local allowed, wait = wanted, nil
  if concurrent ~= '' then
    allowed = math.min(allowed, tonumber(concurrent) - counted(CONCURRENT .. kind))
  end
  if per_minute ~= '' then
    local left = tonumber(per_minute) - counted(MINUTE .. kind)
    if left <= 0 then wait = redis.call('EXISTS', MINUTE .. kind) == 1 and window_left(MINUTE .. kind, A_MINUTE) end
    allowed = math.min(allowed, left)
  end
  return math.max(0, allowed), wait
end

-- The next candidates of all lines, in the order of the list.
local function candidates(lines, wanted)
  local found = {}
  for number, line in ipairs(lines) do
    local most = math.min(wanted, line.allowed)
    if most > 0 then
      local rows = redis.call('ZRANGE', line.key, line.skipped, line.skipped + most - 1, 'WITHSCORES')
      for index = 1, #rows, 2 do
        found[#found + 1] = { id = rows[index], score = tonumber(rows[index + 1]), line = number }
      end
    end
  end
  if #lines > 1 then
    table.sort(found, function(one, other) return one.score < other.score end)
  end
  return found
end

-- Take candidates out of the list, as many as are wanted and as limits allow: all jobs of a type are counted together,
-- so each one taken here counts for every line. A job that someone else holds a lock on is passed over; one that is
-- gone is forgotten. Returns how many were taken, and whether another look may find more.
local function take(worker, lines, wanted, jobs)
  local picked, ids, used = {}, {}, 0
  for _, one in ipairs(candidates(lines, wanted)) do
    local line = lines[one.line]
    if #ids < wanted and used < line.allowed then
      ids[#ids + 1], picked[#picked + 1] = one.id, one
      used = used + 1
    end
  end
  if #ids == 0 then return 0, false end
  local data, locks = strings_at(DATA, ids), strings_at(LOCK, ids)
  local free, more = {}, false
  for index, one in ipairs(picked) do
    if locks[index] and redis.call('SISMEMBER', ACTIVE, one.id) == 0 then
      lines[one.line].skipped = lines[one.line].skipped + 1
      more = true
    else
      one.data = data[index]
      free[#free + 1] = one.id
    end
  end
  local taken, gone, ours = take_out(free), {}, 0
  step_back(#free)
  for index, one in ipairs(picked) do
    local was = taken[one.id]
    local line = lines[one.line]
    if was ~= nil then
      gone[one.line] = gone[one.line] or {}
      table.insert(gone[one.line], one.id)
      if was and one.data and not locks[index] then
        jobs[#jobs + 1] = one
        ours = ours + 1
      else
        if not was then follow(worker.type, one.id, worker.now) end
        more = true
      end
    elseif not locks[index] then
      line.skipped = line.skipped + 1
      more = true
    end
  end
  for number, its in pairs(gone) do
    over_items('ZREM', lines[number].key, its)
    over_items('ZREM', X .. 'type:' .. worker.type, its)
  end
  return ours, more
end

-- Take up to `wanted` jobs of the worker's routes; they are counted in the limits, so the next round and the next
-- worker see what is left of these. Also the ms until a limit may let another one through (0: none is in the way).
local function claim(worker, routes, wanted)
  local paused = redis.call('SMISMEMBER', PAUSED, worker.type, '*')
  if paused[1] == 1 or paused[2] == 1 then return {}, 0 end
  redis.call('SCARD', ACTIVE) -- fails here, before anything is taken, if the key is of a foreign type
  local jobs, held = {}, 0
  for _ = 1, ROUNDS do
    local missing = wanted - #jobs
    for _, line in ipairs(routes) do
      local allowed, wait = allowance(worker.type, missing, line.concurrent, line.per_minute)
      line.allowed = allowed
      if allowed < missing and redis.call('EXISTS', line.key) == 1 then held = math.max(held, wait or LIMIT_PAUSE) end
    end
    local ours, more = take(worker, routes, missing, jobs)
    if ours > 0 then
      count(CONCURRENT .. worker.type, ours)
      count_window(MINUTE .. worker.type, ours, A_MINUTE)
    end
    if #jobs >= wanted or not more then break end
  end
  return jobs, held
end

-- Make the taken jobs the worker's.
local function hold(worker, jobs, now)
  local ids, statuses, records, reply = {}, {}, {}, {}
  local record = worker.token .. '|' .. now .. '|' .. worker.max_stalled .. '|' .. worker.name
  for index, job in ipairs(jobs) do
    local id = job.id
    ids[index] = id
    redis.call('SET', LOCK .. id, worker.server, 'PX', worker.lease)
    statuses[2 * index - 1], statuses[2 * index] = STATUS .. id, 'active'
    records[2 * index - 1], records[2 * index] = id, record
    reply[2 * index - 1], reply[2 * index] = id, job.data
  end
  over_keys('MSET', statuses)
  over_items('SADD', ACTIVE, ids)
  over_items('HSET', X .. 'claims:' .. worker.type, records)
  return reply
end
