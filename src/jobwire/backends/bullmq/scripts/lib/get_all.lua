-- Returns the values of any number of keys, as MGET does: false where there is none.
local function get_all(keys)
  if #keys <= 1000 then return #keys > 0 and redis.call('MGET', unpack(keys)) or {} end
  local values = {}
  for first = 1, #keys, 1000 do
    local part = redis.call('MGET', unpack(keys, first, math.min(first + 999, #keys)))
    for index = 1, #part do values[first + index - 1] = part[index] end
  end
  return values
end
