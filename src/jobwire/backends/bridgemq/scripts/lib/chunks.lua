-- Runs variadic commands over lists of any length: Lua can't pass more than a few thousand arguments at once.

-- Runs `command key item...` over all items. Returns the sum of the replies.
local function over_items(command, key, items)
  local total = 0
  for first = 1, #items, 1000 do
    local reply = redis.call(command, key, unpack(items, first, math.min(first + 999, #items)))
    if type(reply) == 'number' then total = total + reply end
  end
  return total
end

-- Runs `command key...` over all keys. Returns the sum of the replies.
local function over_keys(command, keys)
  local total = 0
  for first = 1, #keys, 1000 do
    local reply = redis.call(command, unpack(keys, first, math.min(first + 999, #keys)))
    if type(reply) == 'number' then total = total + reply end
  end
  return total
end

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
