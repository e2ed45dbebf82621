-- Takes many jobs out of `active` at once.
--@include chunks

-- Removes one entry per id, as LREM from the tail would. Returns the ids that were there, as a set, and their number.
-- The oldest jobs are at the tail, so a batch that finishes is nearly always among the last entries. That part is read,
-- filtered and put back. Only an id further inside costs a scan of its own.
local function take_active(base, ids)
  local active = base .. 'active'
  local taken = {}
  if #ids == 1 then
    local number = redis.call('LREM', active, -1, ids[1])
    if number == 1 then taken[ids[1]] = true end
    return taken, number
  end
  local missing = {}
  for _, id in ipairs(ids) do missing[id] = true end
  local tail = redis.call('LRANGE', active, -(4 * #ids), -1)
  local kept, left = {}, #ids
  local position = #tail
  while position > 0 and left > 0 do
    local id = tail[position]
    if missing[id] then
      missing[id] = nil
      taken[id] = true
      left = left - 1
    else
      kept[#kept + 1] = id
    end
    position = position - 1
  end
  if next(taken) then
    redis.call('LTRIM', active, 0, -(#tail - position) - 1)
    local back = {}
    for index = #kept, 1, -1 do back[#back + 1] = kept[index] end
    over_items('RPUSH', active, back)
  end
  for id in pairs(missing) do
    if redis.call('LREM', active, -1, id) == 1 then
      taken[id] = true
      left = left - 1
    end
  end
  return taken, #ids - left
end
