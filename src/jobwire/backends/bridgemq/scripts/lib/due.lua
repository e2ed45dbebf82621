-- Makes delayed jobs ready that are due. Only the client that removes a job from the set pushes it, so two at once do
-- no harm.
--@include adopt

-- Moves these ids of the delayed set to waiting, in order. Returns how many were moved.
local function move_due(ids, now)
  local data, moved = strings_at(DATA, ids), 0
  local group, route, key
  local function flush()
    if group then enqueue(group, route, route.front) end
    group = nil
  end
  local statuses = {}
  for index, id in ipairs(ids) do
    if redis.call('ZREM', DELAYED, id) == 1 then
      local its, problem = route_of(data[index], id)
      if its then
        redis.call('ZREM', X .. 'delayed:' .. its.type, id)
        local its_key = route_key(its) .. (its.front and '+' or '')
        if its_key ~= key then flush() end
        group, route, key = group or {}, its, its_key
        group[#group + 1] = id
        statuses[#statuses + 1], statuses[#statuses + 2] = STATUS .. id, 'waiting'
        moved = moved + 1
      else
        redis.call('ZREM', X .. 'delayed:', id)
        if problem then poison(id, problem, now) end
      end
    end
  end
  flush()
  over_keys('MSET', statuses)
  return moved
end

-- Makes the due jobs of one type ready, by our own index of delayed jobs. Returns how many.
local function make_due_ready(kind, now)
  local mine = X .. 'delayed:' .. kind
  local ids = redis.call('ZRANGEBYSCORE', mine, '-inf', now, 'LIMIT', 0, 100)
  if #ids == 0 then return 0 end
  adopt_ends(now)
  local moved = move_due(ids, now)
  over_items('ZREM', mine, ids)
  return moved
end
