-- Does one step of updating the index after changes that peers made to the spec's own keys. Changes nothing that a peer
-- reads, except ids without data and jobs that can't be read. KEYS[1] namespace; ARGV: next positions in the waiting,
-- delayed and dead jobs (0 at first). Returns 1 while there is more, and the positions.
--@include finish
--@include peers
local now, STEP = server_now(), 500
local at = { order = tonumber(ARGV[1]), delayed = tonumber(ARGV[2]), dead = tonumber(ARGV[3]) }
local reached = { order = 0, delayed = 0, dead = 0 }
local types = redis.call('SMEMBERS', X .. 'types')

local function total(command, container)
  local sum = 0
  for _, kind in ipairs(types) do sum = sum + redis.call(command, X .. container .. ':' .. kind) end
  return sum
end

-- Visits the next ids from position `at`. The caller keeps the position from call to call. `visit` returns true if it
-- removed the id. Returns the next position, 0 at the end.
local function walk(at, read, visit)
  local ids, removed = read(at, at + STEP - 1), 0
  for _, id in ipairs(ids) do
    if visit(id) then removed = removed + 1 end
  end
  return #ids < STEP and 0 or at + STEP - removed
end

local function range(command, key)
  return function(first, last) return redis.call(command, key, first, last) end
end

local more = false
adopt_ends(now)
if adopt_step(now) then more = true end

-- Waiting jobs that a peer took: they are running, finished or deleted.
if redis.call('ZCARD', ORDER) > redis.call('LLEN', WAITING) then
  local stale, near, searches = {}, {}, 0
  local function read(first, last)
    for _, id in ipairs(redis.call('LRANGE', WAITING, math.max(0, first - STEP), last + STEP)) do near[id] = true end
    return redis.call('ZRANGE', ORDER, first, last)
  end
  reached.order = walk(at.order, read, function(id)
    if near[id] or id:sub(1, #GONE) == GONE then return false end
    local status = redis.call('MGET', STATUS .. id)[1]
    local left = status == 'completed' or status == 'dead' or status == 'active'
      or redis.call('SISMEMBER', ACTIVE, id) == 1 or redis.call('EXISTS', DATA .. id) == 0
    if not left and searches < EXACT_SEARCHES then
      searches = searches + 1
      left = not redis.call('LPOS', WAITING, id)
    end
    if left then stale[#stale + 1] = id end
    return left
  end)
  for _, id in ipairs(stale) do
    redis.call('ZREM', ORDER, id)
    local route = route_of(redis.call('MGET', DATA .. id)[1], id)
    if route then
      remove_from_index(route, { id })
      update_record(route.type, id, now)
    else
      for _, kind in ipairs(types) do redis.call('ZREM', X .. 'type:' .. kind, id) end
    end
  end
end

-- Delayed jobs that a peer added or moved on. Jobs that can't be read have the type ''.
local delayed = redis.call('ZCARD', DELAYED)
local indexed = total('ZCARD', 'delayed')
if delayed > indexed then
  reached.delayed = walk(at.delayed, range('ZRANGE', DELAYED), function(id)
    redis.call('ZADD', X .. 'delayed:' .. recorded_type(id), redis.call('ZSCORE', DELAYED, id), id)
  end)
elseif delayed < indexed then
  for _, kind in ipairs(types) do
    local mine = X .. 'delayed:' .. kind
    for _, id in ipairs(redis.call('ZRANGE', mine, 0, STEP - 1)) do
      if not redis.call('ZSCORE', DELAYED, id) then redis.call('ZREM', mine, id) end
    end
  end
end

-- Dead jobs likewise.
local dead, indexed_dead = redis.call('LLEN', DEADLETTER), total('ZCARD', 'dead')
if dead > indexed_dead then
  reached.dead = walk(at.dead, range('LRANGE', DEADLETTER), function(id)
    redis.call('ZADD', X .. 'dead:' .. recorded_type(id), 'NX', now, id)
  end)
elseif dead < indexed_dead then
  for _, kind in ipairs(types) do
    local mine = X .. 'dead:' .. kind
    for _, id in ipairs(redis.call('ZRANGE', mine, 0, STEP - 1)) do
      if not redis.call('LPOS', DEADLETTER, id) then redis.call('ZREM', mine, id) end
    end
  end
end

if redis.call('SCARD', ACTIVE) ~= total('HLEN', 'claims') then update_records(types, now) end
if reached.order + reached.delayed + reached.dead > 0 then more = true end
return { more and 1 or 0, reached.order, reached.delayed, reached.dead }
