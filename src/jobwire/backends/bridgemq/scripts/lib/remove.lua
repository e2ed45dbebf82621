-- Deletes jobs and everything that belongs to them.
--@include finish

local function delete_keys(ids)
  for _, prefix in ipairs({ DATA, STATUS, RESULT, PROGRESS, LOCK, LOGS }) do over_keys('DEL', prefixed(prefix, ids)) end
  over_items('HDEL', X .. 'stalls', ids)
  over_items('SREM', WITH_OUTPUT, ids)
end

-- Deletes waiting jobs, whether or not their data can be read. Those that repeat by cron are only taken out of the
-- list.
-- Returns the ids of the deleted jobs.
local function remove_waiting(kind, ids)
  local data, by_route, gone = strings_at(DATA, ids), {}, {}
  local taken = take_out(ids)
  step_back(#ids)
  for index, id in ipairs(ids) do
    -- The index was wrong about this one: search the whole list.
    if taken[id] == nil then
      redis.call('LREM', WAITING, 1, id)
      redis.call('ZREM', ORDER, id)
    end
    local route = route_of(data[index], id)
    if route then
      local key = route_key(route)
      by_route[key] = by_route[key] or {}
      table.insert(by_route[key], id)
    end
    if redis.call('ZSCORE', CRON, id) then
      redis.call('SET', STATUS .. id, 'cron')
    elseif taken[id] ~= false or redis.call('SISMEMBER', ACTIVE, id) == 0 then
      gone[#gone + 1] = id
    end
  end
  for key, its in pairs(by_route) do over_items('ZREM', key, its) end
  over_items('ZREM', X .. 'type:' .. kind, ids)
  delete_keys(gone)
  return gone
end
