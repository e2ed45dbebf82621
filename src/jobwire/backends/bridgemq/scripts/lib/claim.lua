-- Claims jobs. The worker sends the routes that admit it, so only their jobs are read, whatever else is in the list.
-- Limits belong to a route, so a route at its limit is skipped as a whole.
--@include due
--@include peers
--@include counters
local ROUNDS, LIMIT_PAUSE, A_MINUTE = 4, 200, 60000

-- Returns how many jobs of a route with these limits may start now, and the ms until the minute is over if the limit
-- per minute is reached.
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

-- Returns the next candidates of all routes, in the order of the list.
local function candidates(routes, wanted)
  local found = {}
  for number, route in ipairs(routes) do
    local most = math.min(wanted, route.allowed)
    if most > 0 then
      local rows = redis.call('ZRANGE', route.key, route.skipped, route.skipped + most - 1, 'WITHSCORES')
      for index = 1, #rows, 2 do
        found[#found + 1] = { id = rows[index], score = tonumber(rows[index + 1]), route = number }
      end
    end
  end
  if #routes > 1 then
    table.sort(found, function(one, other) return one.score < other.score end)
  end
  return found
end

-- Takes candidates out of the list, as many as are wanted and as limits allow. All jobs of a type are counted together,
-- so each one taken here counts for every route. Skips a job that is locked by another worker, and removes one that is
-- gone from the index. Returns how many were taken, and true if another call may find more.
local function take(worker, routes, wanted, jobs)
  local picked, ids, used = {}, {}, 0
  for _, one in ipairs(candidates(routes, wanted)) do
    local route = routes[one.route]
    if #ids < wanted and used < route.allowed then
      ids[#ids + 1], picked[#picked + 1] = one.id, one
      used = used + 1
    end
  end
  if #ids == 0 then return 0, false end
  local data, locks = strings_at(DATA, ids), strings_at(LOCK, ids)
  local free, more = {}, false
  for index, one in ipairs(picked) do
    if locks[index] and redis.call('SISMEMBER', ACTIVE, one.id) == 0 then
      routes[one.route].skipped = routes[one.route].skipped + 1
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
    local route = routes[one.route]
    if was ~= nil then
      gone[one.route] = gone[one.route] or {}
      table.insert(gone[one.route], one.id)
      if was and one.data and not locks[index] then
        jobs[#jobs + 1] = one
        ours = ours + 1
      else
        if not was then update_record(worker.type, one.id, worker.now) end
        more = true
      end
    elseif not locks[index] then
      route.skipped = route.skipped + 1
      more = true
    end
  end
  for number, its in pairs(gone) do
    over_items('ZREM', routes[number].key, its)
    over_items('ZREM', X .. 'type:' .. worker.type, its)
  end
  return ours, more
end

-- Takes up to `wanted` jobs of the worker's routes and counts them in the limits, so that the next round and the next
-- worker see what is left. Returns the jobs, and the ms until a limit may allow another one (0: no limit is reached).
local function claim(worker, routes, wanted)
  local paused = redis.call('SMISMEMBER', PAUSED, worker.type, '*')
  if paused[1] == 1 or paused[2] == 1 then return {}, 0 end
  redis.call('SCARD', ACTIVE) -- fails here, before anything is taken, if the key is of a wrong type
  local jobs, held = {}, 0
  for _ = 1, ROUNDS do
    local missing = wanted - #jobs
    for _, route in ipairs(routes) do
      local allowed, wait = allowance(worker.type, missing, route.concurrent, route.per_minute)
      route.allowed = allowed
      if allowed < missing and redis.call('EXISTS', route.key) == 1 then held = math.max(held, wait or LIMIT_PAUSE) end
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

-- Stores lock, status and record of each taken job. Returns {id, data, id, data, ...}.
local function store_claims(worker, jobs, now)
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
