-- The index beside the waiting list: a hint of where each waiting job stands and which route it has.
--   x:order          every waiting id, by its place in the list
--   x:type:<type>    the waiting ids of a type, by the same numbers
--   x:line:<route>   the waiting ids of a route, by the same numbers
--   x:routes:<scope> the routes of a scope: signature -> words, and `v`, which grows with every change
-- The list is the truth. Others push to it and take from it without a word, so a job is ours only once it has been
-- removed from the list itself.
--@include place
--@include chunks
--@include route
local ORDER, SEQUENCE = X .. 'order', X .. 'seq'
-- What stands in the list where a job was taken out of its midst. It has no data, so peers drop it as the spec says.
local GONE, GONE_NAMES = 'x:gone', X .. 'gone'
local NEAR, EXACT_SEARCHES = 256, 8

-- Note jobs of one route: `places` is {score, id, score, id, ...}.
local function note(route, places)
  over_items('ZADD', ORDER, places)
  over_items('ZADD', X .. 'type:' .. route.type, places)
  over_items('ZADD', line_of(route), places)
  local routes = X .. 'routes:' .. route.scope
  if redis.call('HSETNX', routes, route.sig, route.words) == 1 then
    -- From one counter for all, so that a version never comes back after a scope was deleted.
    redis.call('HSET', routes, 'v', redis.call('HINCRBY', SEQUENCE, 'routes', 1))
    redis.call('SADD', X .. 'types', route.type)
    if route.server ~= '' then redis.call('SADD', X .. 'servers:' .. route.type, route.server) end
  end
end

local function forget(route, ids)
  over_items('ZREM', X .. 'type:' .. route.type, ids)
  over_items('ZREM', line_of(route), ids)
end

-- Push jobs of one route to the list, in this order, and note them.
local function enqueue(ids, route, front)
  local count, places = #ids, {}
  if count == 0 then return end
  if front then
    local first = redis.call('HINCRBY', SEQUENCE, 'head', -count)
    for index = 1, count do places[2 * index - 1], places[2 * index] = first + count - index, ids[index] end
  else
    local last = redis.call('HINCRBY', SEQUENCE, 'tail', count)
    for index = 1, count do places[2 * index - 1], places[2 * index] = last - count + index, ids[index] end
  end
  over_items(front and 'LPUSH' or 'RPUSH', WAITING, ids)
  note(route, places)
end

-- The position of an id: near its rank, for pushes and takings that we have not seen shift it a little. `spots` are the
-- positions seen so far, since jobs that are taken together often stand together.
local function position_of(id, spots)
  if spots[id] then return spots[id] end
  local rank = redis.call('ZRANK', ORDER, id)
  if not rank then return nil end
  for _, reach in ipairs({ { 4, 60 }, { 256, 256 } }) do
    local from = math.max(rank - reach[1], 0)
    for index, there in ipairs(redis.call('LRANGE', WAITING, from, rank + reach[2])) do
      spots[there] = spots[there] or from + index - 1
    end
    if spots[id] then return spots[id] end
  end
end

-- True if the job stands in the waiting list. The index says where to look; peers take jobs without a word to it, so
-- what it says is checked against the list itself. The walk through the whole list is for a job that is not near its
-- place: one that a peer took, or pushed and nobody has taken notice of yet.
local function stands_in_list(id, spots) return position_of(id, spots) or redis.call('LPOS', WAITING, id) end

local function sweep()
  local names = redis.call('LRANGE', GONE_NAMES, 0, -1)
  redis.call('LREM', WAITING, 0, GONE)
  over_items('ZREM', ORDER, names)
  redis.call('DEL', GONE_NAMES)
end

-- Removing from the middle of a list costs a walk to it (2.7 ms in 100,000), writing there does not. So jobs that are
-- deep inside leave a GONE behind, with a stand-in in the order so that ranks stay positions, and one walk removes
-- many.
local function leave_gaps(ids, length)
  local scores, stand_ins, names = scores_of(ORDER, ids), {}, {}
  for index = 1, #ids do
    local name = GONE .. ':' .. ids[index]
    stand_ins[2 * index - 1], stand_ins[2 * index], names[index] = scores[index] or 0, name, name
  end
  over_items('ZREM', ORDER, ids)
  over_items('ZADD', ORDER, stand_ins)
  over_items('RPUSH', GONE_NAMES, names)
  if redis.call('LLEN', GONE_NAMES) > math.max(64, length / 64) then sweep() end
end

-- Remove jobs from the waiting list: those that were there are true in the answer, those of which we don't know (the
-- index misled us too often to go on searching) are nil, those that were not there are false.
local function take_out(ids)
  local count, taken = #ids, {}
  if count == 0 then return taken end
  local head = redis.call('LRANGE', WAITING, 0, count - 1)
  local ahead = #head == count
  for index = 1, count do
    if not ahead or head[index] ~= ids[index] then
      ahead = false
      break
    end
  end
  if ahead then
    redis.call('LPOP', WAITING, count)
    over_items('ZREM', ORDER, ids)
    for index = 1, count do taken[ids[index]] = true end
    return taken
  end
  local length, found, lowest, highest = redis.call('LLEN', WAITING), {}, nil, 0
  local searches, spots = 0, {}
  for _, id in ipairs(ids) do
    local position = position_of(id, spots)
    if position then
      redis.call('LSET', WAITING, position, GONE)
      found[#found + 1], taken[id] = id, true
      lowest, highest = math.min(lowest or position, position), math.max(highest, position)
    elseif redis.call('SISMEMBER', ACTIVE, id) == 1 then
      redis.call('ZREM', ORDER, id)
      taken[id] = false
    elseif searches < EXACT_SEARCHES then
      searches = searches + 1
      taken[id] = redis.call('LREM', WAITING, 1, id) == 1
      redis.call('ZREM', ORDER, id)
      spots = {}
    end
  end
  if #found == 0 then return taken end
  if highest < NEAR then
    redis.call('LREM', WAITING, #found, GONE)
    over_items('ZREM', ORDER, found)
  elseif lowest >= length - NEAR then
    redis.call('LREM', WAITING, -#found, GONE)
    over_items('ZREM', ORDER, found)
  else
    leave_gaps(found, length)
  end
  return taken
end
