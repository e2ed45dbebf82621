-- The index beside the waiting list: the probable position of each waiting job, and its route.
--   x:order          every waiting id, by its position in the list
--   x:type:<type>    the waiting ids of a type, by the same numbers
--   x:line:<route>   the waiting ids of a route, by the same numbers
--   x:routes:<scope> the routes of a scope: signature -> definition, and `v`, which grows with every change
-- The list is authoritative. Peers push to it and take from it without updating the index, so a job is claimed only
-- once it has been removed from the list itself.
--@include keys
--@include lookups
--@include route
local ORDER, SEQUENCE = X .. 'order', X .. 'seq'
-- The entry that replaces a job taken out of the middle of the list. It has no data, so peers drop it by the spec's
-- rule.
local GONE, GONE_NAMES = 'x:gone', X .. 'gone'
local NEAR, EXACT_SEARCHES = 256, 8

-- Adds jobs of one route to the index. `entries` is {score, id, score, id, ...}.
local function add_to_index(route, entries)
  over_items('ZADD', ORDER, entries)
  over_items('ZADD', X .. 'type:' .. route.type, entries)
  over_items('ZADD', route_key(route), entries)
  local routes = X .. 'routes:' .. route.scope
  if redis.call('HSETNX', routes, route.sig, route.definition) == 1 then
    -- From one counter for all, so that a version never comes back after a scope was deleted.
    redis.call('HSET', routes, 'v', redis.call('HINCRBY', SEQUENCE, 'routes', 1))
    redis.call('SADD', X .. 'types', route.type)
    if route.server ~= '' then redis.call('SADD', X .. 'servers:' .. route.type, route.server) end
  end
end

local function remove_from_index(route, ids)
  over_items('ZREM', X .. 'type:' .. route.type, ids)
  over_items('ZREM', route_key(route), ids)
end

-- Pushes jobs of one route to the list, in this order, and adds them to the index.
local function enqueue(ids, route, front)
  local count, entries = #ids, {}
  if count == 0 then return end
  if front then
    local first = redis.call('HINCRBY', SEQUENCE, 'head', -count)
    for index = 1, count do entries[2 * index - 1], entries[2 * index] = first + count - index, ids[index] end
  else
    local last = redis.call('HINCRBY', SEQUENCE, 'tail', count)
    for index = 1, count do entries[2 * index - 1], entries[2 * index] = last - count + index, ids[index] end
  end
  over_items(front and 'LPUSH' or 'RPUSH', WAITING, ids)
  add_to_index(route, entries)
end

-- Returns the position of an id in the list, searched near its rank: changes by peers shift it a little. `spots` keeps
-- the positions seen so far, since jobs that are taken together are often near each other.
local function position_of(id, spots)
  if spots[id] then return spots[id] end
  local rank = redis.call('ZRANK', ORDER, id)
  if not rank then return nil end
  for _, span in ipairs({ { 4, 60 }, { 256, 256 } }) do
    local from = math.max(rank - span[1], 0)
    for index, there in ipairs(redis.call('LRANGE', WAITING, from, rank + span[2])) do
      spots[there] = spots[there] or from + index - 1
    end
    if spots[id] then return spots[id] end
  end
end

-- Returns true if the job is in the waiting list. Peers take jobs without updating the index, so the list itself is
-- checked. The search through the whole list is for a job that is not near its rank: one that a peer took, or pushed
-- since the index was updated.
local function is_in_list(id, spots) return position_of(id, spots) or redis.call('LPOS', WAITING, id) end

local function sweep()
  local names = redis.call('LRANGE', GONE_NAMES, 0, -1)
  redis.call('LREM', WAITING, 0, GONE)
  over_items('ZREM', ORDER, names)
  redis.call('DEL', GONE_NAMES)
end

-- Removing from the middle of a list costs a walk to it (2.7 ms in 100,000), writing there does not. So jobs deep
-- inside are overwritten with GONE, and replaced by another name in the order so that ranks stay positions. Later, one
-- walk removes many of them.
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

-- Removes jobs from the waiting list. In the returned table a job is true if it was there, false if not, and nil if
-- that is unknown: the index was wrong too often to search for it.
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
