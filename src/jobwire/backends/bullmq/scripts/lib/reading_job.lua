-- Reading what others may have written badly.

-- A stored JSON object, or an empty one if something else is there.
local function object_of(text)
  if not text then return {} end
  local ok, value = pcall(cjson.decode, text)
  if ok and type(value) == 'table' then return value end
  return {}
end

-- Fields of a hash, false for each that is missing; all missing if the key is of another type.
local function fields_of(key, ...)
  local values = redis.pcall('HMGET', key, ...)
  if values.err then
    values = {}
    for i = 1, select('#', ...) do values[i] = false end
  end
  return values
end

local function all_fields_of(key)
  local fields = redis.pcall('HGETALL', key)
  return fields.err and {} or fields
end

-- True for a job, and not for a key of the queue that happens to be asked for as one (`meta`, `wait`).
local function is_job(base, id)
  return fields_of(base .. id, 'timestamp')[1] ~= false
end
