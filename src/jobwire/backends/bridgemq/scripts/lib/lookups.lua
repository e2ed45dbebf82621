-- Reads many keys or scores at once.

--@include chunks

-- Returns the strings at prefix..id of all ids, false where there is none or the value is not a string.
local function strings_at(prefix, ids)
  local values = {}
  for first = 1, #ids, 1000 do
    local keys = {}
    for index = first, math.min(first + 999, #ids) do keys[#keys + 1] = prefix .. ids[index] end
    local part = redis.call('MGET', unpack(keys))
    for index = 1, #part do values[first + index - 1] = part[index] end
  end
  return values
end

-- Returns the scores of all ids in a sorted set, false for an id that is not in it.
local function scores_of(key, ids)
  local values = {}
  for first = 1, #ids, 1000 do
    local part = redis.call('ZMSCORE', key, unpack(ids, first, math.min(first + 999, #ids)))
    for index = 1, #part do values[first + index - 1] = part[index] end
  end
  return values
end

local function prefixed(prefix, ids)
  local keys = {}
  for index = 1, #ids do keys[index] = prefix .. ids[index] end
  return keys
end
