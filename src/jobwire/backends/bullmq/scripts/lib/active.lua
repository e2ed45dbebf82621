-- Takes many jobs out of `active` at once.
--@include chunks

-- Removes one entry per id of the set `missing`, which has `number` of them, as LREM from the tail would. Leaves in the
-- set the ids that were not there. Returns the number of those that were.
-- The oldest jobs are at the tail, so a batch that finishes is nearly always among the last entries. These are popped,
-- and those of other jobs put back. Only an id further inside costs a scan of its own.
local function take_active(base, missing, number)
  local active = base .. 'active'
  local others, left = {}, number
  for _ = 1, number > 1 and 4 or 0 do
    local last = left > 0 and redis.call('RPOP', active, number)
    if not last then break end
    for index = 1, #last do
      local id = last[index]
      if missing[id] then
        missing[id] = nil
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
      missing[id] = nil
      left = left - 1
    end
  end
  return number - left
end
