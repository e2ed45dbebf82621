-- Runs variadic commands over lists of any length: Lua can't pass more than a few thousand arguments at once.

-- Runs `command key item...` over all items, a thousand arguments at a time. Returns the sum of the integer replies.
local function call_many(command, key, items)
  local total = 0
  for first = 1, #items, 1000 do
    local reply = redis.call(command, key, unpack(items, first, math.min(first + 999, #items)))
    if type(reply) == 'number' then total = total + reply end
  end
  return total
end

-- Runs `command key...` over all keys (DEL, EXISTS). Returns the sum of the replies.
local function sum_over(command, keys)
  local total = 0
  for first = 1, #keys, 1000 do
    total = total + redis.call(command, unpack(keys, first, math.min(first + 999, #keys)))
  end
  return total
end

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
