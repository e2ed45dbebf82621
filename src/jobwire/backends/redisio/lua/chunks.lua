-- Runs variadic commands over lists of any length: Lua can't pass more than a few thousand arguments at once.

-- Runs `command key item...` over all items. Returns the sum of the integer replies.
local function over_items(command, key, items)
  local total = 0
  for first = 1, #items, 1000 do
    local reply = redis.call(command, key, unpack(items, first, math.min(first + 999, #items)))
    if type(reply) == 'number' then total = total + reply end
  end
  return total
end

-- Runs `command key...` over all keys (DEL, EXISTS), or over pairs of key and value (MSET). Returns the sum of the
-- integer replies.
local function over_keys(command, keys)
  local total = 0
  for first = 1, #keys, 1000 do
    local reply = redis.call(command, unpack(keys, first, math.min(first + 999, #keys)))
    if type(reply) == 'number' then total = total + reply end
  end
  return total
end
