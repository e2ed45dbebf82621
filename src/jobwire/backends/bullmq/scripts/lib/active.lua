-- Takes many jobs out of `active` at once.
--@include chunks

-- Removes one entry per id, as LREM from the tail would. Returns the ids that were there, as a set, and their number.
-- The oldest jobs are at the tail, so a batch that finishes is nearly always among the last entries. These are popped,
-- and those of other jobs put back. Only an id further inside costs a scan of its own.
local function take_active(base, ids)
  local active, number = base .. 'active', #ids
  local taken = {}
  if number == 1 then
    local removed = redis.call('LREM', active, -1, ids[1])
    if removed == 1 then taken[ids[1]] = true end
    return taken, removed
  end
  local missing, others, left = {}, {}, number
  for _, id in ipairs(ids) do missing[id] = true end
  for _ = 1, 4 do
    local last = left > 0 and redis.call('RPOP', active, number)
    if not last then break end
    for _, id in ipairs(last) do
      if missing[id] then
        missing[id] = nil
        taken[id] = true
        left = left - 1
      else
        others[#others + 1] = id
      end
    end
  end
  local back = {}
  for index = #others, 1, -1 do back[#back + 1] = others[index] end
  over_items('RPUSH', active, back)
  for id in pairs(missing) do
    if redis.call('LREM', active, -1, id) == 1 then
      taken[id] = true
      left = left - 1
    end
  end
  return taken, number - left
end
